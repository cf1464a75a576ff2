// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import org.junit.jupiter.api.Test;

/** Standard library functions that cover every type a signature can have. */
class NativeCallTest {
  private static long function(String name) {
    return Pointer.nativeValue(NativeLibrary.getProcess().getGlobalVariableAddress(name));
  }

  private static long call(String signature, String name, long... arguments) {
    return new NativeCall(signature).call(function(name), arguments);
  }

  @Test
  void runPassesEveryArgumentAndResultType() {
    Memory text = new Memory(16);
    text.setString(0, "-9000000000");
    long address = Pointer.nativeValue(text);
    assertEquals(7, call("ii", "abs", -7));
    assertEquals(-1, call("ii", "tolower", -1));
    assertEquals(-9_000_000_000L, call("laai", "strtoll", address, 0, 10));
    assertEquals(address + 1, call("aai", "strchr", address, '9'));
    assertEquals(0, call("aai", "strchr", address, 'x'));
    assertEquals(address, call("aail", "memset", address, 'y', 3));
    assertEquals("yyy00000000", text.getString(0));
  }

  @Test
  void runWithoutResultReturnsZero() {
    Memory text = new Memory(8);
    text.setLong(0, -1);
    assertEquals(0, call("val", "bzero", Pointer.nativeValue(text), 4));
    assertEquals(-1L << 32, text.getLong(0));
    new NativeCall("va").run(function("free"), 0);
  }

  @Test
  void rejectsInvalidSignature() {
    for (String signature : new String[] {"x", "vx", "va" + "a".repeat(16)}) {
      assertThrows(IllegalArgumentException.class, () -> new NativeCall(signature), signature);
    }
  }
}
