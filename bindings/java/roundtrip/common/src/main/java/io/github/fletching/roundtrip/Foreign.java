// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import com.sun.jna.Native;
import com.sun.jna.Pointer;
import java.nio.charset.StandardCharsets;

/** Reads and writes what structs point to. Addresses are not NULL unless it says so. */
final class Foreign {
  private Foreign() {}

  static byte[] bytes(long address, long count) {
    return new Pointer(address).getByteArray(0, Math.toIntExact(count));
  }

  /** The bytes before the NUL. */
  static byte[] textBytes(long address) {
    Pointer text = new Pointer(address);
    return text.getByteArray(0, Math.toIntExact(text.indexOf(0, (byte) 0)));
  }

  /** The text at an address; what is not UTF-8 is replaced. */
  static String text(long address) {
    return new String(textBytes(address), StandardCharsets.UTF_8);
  }

  static int readInt(long address) {
    return new Pointer(address).getInt(0);
  }

  static long readLong(long address) {
    return new Pointer(address).getLong(0);
  }

  static long pointerAt(long list, long index) {
    return Pointer.nativeValue(new Pointer(list).getPointer(index * Native.POINTER_SIZE));
  }

  static void setPointerAt(long list, long index, long value) {
    new Pointer(list).setPointer(index * Native.POINTER_SIZE, new Pointer(value));
  }

  static void write(long address, byte[] bytes) {
    new Pointer(address).write(0, bytes, 0, bytes.length);
  }

  static void copy(long from, long to, long size) {
    write(to, bytes(from, size));
  }
}
