// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing;

import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;

/** A thread that the JVM did not start. */
public final class ForeignThread {
  private ForeignThread() {}

  /**
   * Calls {@code function}, of type {@code void *(*)(void *)}, on a thread that C code starts and
   * joins.
   */
  public static void run(long function) {
    Memory thread = new Memory(Native.LONG_SIZE);
    check("pthread_create", thread, null, new Pointer(function), null);
    check("pthread_join", thread.getNativeLong(0), null);
  }

  private static void check(String name, Object... arguments) {
    int code = NativeLibrary.getProcess().getFunction(name).invokeInt(arguments);
    if (code != 0) {
      throw new IllegalStateException(name + ": failed: expected 0, got " + code);
    }
  }
}
