// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi.engine;

import io.github.fletching.abi.LayoutClass;
import java.nio.Buffer;
import java.nio.ByteBuffer;

/**
 * What C offers to Java: memory at an address, and functions in both directions. Addresses and
 * function pointers are a {@code long}; 0 is NULL. Nothing here checks an address. Any thread.
 *
 * <p>A signature is a character for the result and one for each argument: {@code v} for void,
 * {@code i} for int32_t, {@code l} for int64_t, {@code a} for an address: {@code "iaa"}.
 */
public interface Engine {
  /** The class of the platform that runs this. */
  LayoutClass target();

  /** The size of a pointer. */
  int pointerSize();

  // --- Memory, at any alignment

  /** Reads a byte. */
  byte getByte(long address);

  /** Reads an int32_t. */
  int getInt(long address);

  /** Reads an int64_t. */
  long getLong(long address);

  /** Reads a pointer. */
  long getAddress(long address);

  /** Reads bytes until the array is full. */
  void read(long address, byte[] into);

  /** Writes an int32_t. */
  void putInt(long address, int value);

  /** Writes an int64_t. */
  void putLong(long address, long value);

  /** Writes a pointer. */
  void putAddress(long address, long value);

  /** Writes all bytes of the array. */
  void write(long address, byte[] from);

  /** Copies bytes from one place to another, which do not overlap. */
  void copy(long from, long to, long size);

  /** Zeroed memory of C, for {@link #free}; 0 when there is none. */
  long allocate(long size);

  /** Frees what {@link #allocate} returned. */
  void free(long address);

  /** The address of a direct buffer's first byte, which is valid while the buffer is reachable. */
  long addressOf(Buffer direct);

  /** A direct buffer over memory, which is the caller's to keep. */
  ByteBuffer view(long address, int size);

  // --- Functions

  /** Calls a function {@code void (*)(void*)}: the release callbacks. */
  void run(long function, long argument);

  /** Calls a function; the result is 0 for void. */
  long call(String signature, long function, long... arguments);

  /**
   * Makes a function for C, which lives until {@link #close}: make one for each kind of callback.
   * What the callback throws is logged under the name, and C gets {@code failure}.
   */
  long stub(String name, String signature, long failure, Callback callback);

  /**
   * Loads a library, which stays loaded, by its path or its name in the search path of the system.
   *
   * @return a handle for {@link #symbol}; 0 when there is no such library
   */
  long load(String library);

  /**
   * The address of a symbol; 0 when the library has none of that name. Library 0 is the standard
   * library of C, on systems other than Windows.
   */
  long symbol(long library, String name);

  /**
   * Frees the functions for C, which are not called any more. The engine is not used afterwards.
   */
  void close();

  /** What runs when C calls a stub. Arguments that the signature does not have are 0. */
  interface Callback {
    /** Returns the result, which is ignored for void. */
    long run(long first, long second, long third, long fourth);
  }
}
