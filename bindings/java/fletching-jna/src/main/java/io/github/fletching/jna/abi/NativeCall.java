// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;

/**
 * Calls functions of one signature through JNA's libffi. JNA's own Function rebuilds this
 * description in every call and allocates an object per argument, which takes five times as long.
 */
final class NativeCall {
  private static final int MOST_ARGUMENTS = 16;
  private static final int POINTER = Abi.POINTER_SIZE;
  private static final int VALUES = 8; // offset in a Scratch, after the result
  private static final int ADDRESSES = VALUES + MOST_ARGUMENTS * 8;
  private static final Pointer MEMORY = new Pointer(0);
  private static final ThreadLocal<Scratch> SCRATCH = ThreadLocal.withInitial(Scratch::new);

  private static final String KINDS = "vila";
  // The ffi_type structs for these kinds; the values come from libffi's header.
  private static final long[] TYPES = {
    type(1, 1, 0), type(4, 4, 10), type(8, Abi.TARGET_INT64_ALIGN, 12), type(POINTER, POINTER, 14)
  };

  private final String signature;
  private final Memory types; // argument types; must outlive the description
  private final long description; // an ffi_cif, never freed

  /** Creates a call for a signature of the engine. */
  NativeCall(String signature) {
    int arguments = signature.length() - 1;
    if (arguments > MOST_ARGUMENTS) {
      String most = "signature: too long: expected at most " + MOST_ARGUMENTS;
      throw new IllegalArgumentException(most + " arguments, got " + arguments);
    }
    this.signature = signature;
    types = new Memory((arguments + 1L) * POINTER);
    for (int i = 0; i < arguments; i++) {
      types.setPointer((long) i * POINTER, new Pointer(type(signature.charAt(i + 1))));
    }
    long result = type(signature.charAt(0));
    description = Native.ffi_prep_cif(0, arguments, result, Pointer.nativeValue(types));
  }

  /** Per-thread memory for arguments and result. libffi uses it only during a call. */
  private static final class Scratch {
    final Memory memory = new Memory(ADDRESSES + (long) MOST_ARGUMENTS * POINTER);
    final long result = Pointer.nativeValue(memory);
    final long values = Pointer.nativeValue(memory.share(VALUES));
    final long addresses = Pointer.nativeValue(memory.share(ADDRESSES));

    Scratch() {
      for (int i = 0; i < MOST_ARGUMENTS; i++) {
        memory.setPointer(ADDRESSES + (long) i * POINTER, memory.share(VALUES + i * 8L));
      }
    }
  }

  /** Calls a function that takes one address and returns nothing. */
  void run(long function, long argument) {
    Scratch scratch = SCRATCH.get();
    putAddress(scratch.values, argument);
    Native.ffi_call(description, function, scratch.result, scratch.addresses);
  }

  /** Calls a function; the result is 0 for void. */
  long call(long function, long... arguments) {
    Scratch scratch = SCRATCH.get();
    for (int i = 0; i < arguments.length; i++) {
      put(signature.charAt(i + 1), scratch.values + i * 8L, arguments[i]);
    }
    Native.ffi_call(description, function, scratch.result, scratch.addresses);
    return result(scratch.result);
  }

  /** libffi widens a result to a register. */
  private long result(long address) {
    switch (signature.charAt(0)) {
      case 'v':
        return 0;
      case 'i':
        return (int) getAddress(address);
      case 'l':
        return MEMORY.getLong(address);
      default:
        return getAddress(address);
    }
  }

  private static void put(char kind, long address, long value) {
    switch (kind) {
      case 'i':
        MEMORY.setInt(address, (int) value);
        break;
      case 'l':
        MEMORY.setLong(address, value);
        break;
      default:
        putAddress(address, value);
    }
  }

  static long getAddress(long address) {
    return POINTER == 8 ? MEMORY.getLong(address) : Integer.toUnsignedLong(MEMORY.getInt(address));
  }

  static void putAddress(long address, long value) {
    if (POINTER == 8) {
      MEMORY.setLong(address, value);
    } else {
      MEMORY.setInt(address, (int) value);
    }
  }

  /** Returns the index of a signature's type in {@code "vila"}. */
  static int indexOf(char kind) {
    int index = KINDS.indexOf(kind);
    if (index < 0) {
      throw new IllegalArgumentException("signature: " + kind + ": expected v, i, l or a");
    }
    return index;
  }

  private static long type(char kind) {
    return TYPES[indexOf(kind)];
  }

  private static long type(int size, int alignment, int code) {
    long type = Native.malloc(3L * POINTER);
    putAddress(type, size);
    MEMORY.setShort(type + POINTER, (short) alignment);
    MEMORY.setShort(type + POINTER + 2, (short) code);
    putAddress(type + (POINTER == 8 ? 16 : 8), 0);
    return type;
  }
}
