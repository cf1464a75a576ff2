// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import com.sun.jna.Memory;
import io.github.fletching.ArrayBuilder;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;

/** A program that makes the first call of the library with a separate context class loader. */
public final class FirstCaller {
  private FirstCaller() {}

  /** Prints whether the library keeps the class loader alive. */
  public static void main(String[] arguments) {
    new Memory(1).close(); // JNA's thread keeps the class loader of its first caller
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    WeakReference<ClassLoader> own = new WeakReference<>(new URLClassLoader(new URL[0], before));
    thread.setContextClassLoader(own.get());
    new ArrayBuilder(1).build(null).close();
    thread.setContextClassLoader(before);
    for (int i = 0; i < 50 && own.get() != null; i++) {
      System.gc();
    }
    System.out.println("kept " + (own.get() != null));
  }
}
