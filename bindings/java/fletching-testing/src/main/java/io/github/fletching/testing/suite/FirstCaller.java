// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import com.sun.jna.Memory;
import io.github.fletching.ArrayBuilder;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;

/** A program whose first call of the library is made with a context class loader of its own. */
public final class FirstCaller {
  private FirstCaller() {}

  /** Prints whether the library keeps the class loader. */
  public static void main(String[] arguments) {
    new Memory(1).close(); // the thread of JNA keeps the class loader of its first caller
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
