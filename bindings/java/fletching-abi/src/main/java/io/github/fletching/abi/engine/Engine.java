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
  /**
   * The class of the platform that runs this.
   *
   * @return the class
   */
  LayoutClass target();

  /**
   * The size of a pointer.
   *
   * @return the size, in bytes
   */
  int pointerSize();

  // --- Memory, at any alignment

  /**
   * Reads a byte.
   *
   * @param address the address
   * @return the byte
   */
  byte getByte(long address);

  /**
   * Reads an int32_t.
   *
   * @param address the address
   * @return the number
   */
  int getInt(long address);

  /**
   * Reads an int64_t.
   *
   * @param address the address
   * @return the number
   */
  long getLong(long address);

  /**
   * Reads a pointer.
   *
   * @param address the address
   * @return the pointer; 0 for NULL
   */
  long getAddress(long address);

  /**
   * Reads bytes until the array is full.
   *
   * @param address the address of the first byte
   * @param into the array
   */
  void read(long address, byte[] into);

  /**
   * Writes an int32_t.
   *
   * @param address the address
   * @param value the number
   */
  void putInt(long address, int value);

  /**
   * Writes an int64_t.
   *
   * @param address the address
   * @param value the number
   */
  void putLong(long address, long value);

  /**
   * Writes a pointer.
   *
   * @param address the address
   * @param value the pointer; 0 for NULL
   */
  void putAddress(long address, long value);

  /**
   * Writes all bytes of the array.
   *
   * @param address the address of the first byte
   * @param from the array
   */
  void write(long address, byte[] from);

  /**
   * Copies bytes from one place to another, which do not overlap.
   *
   * @param from the address of the first byte to read
   * @param to the address of the first byte to write
   * @param size the number of bytes
   */
  void copy(long from, long to, long size);

  /**
   * Allocates zeroed C memory, which the caller frees with {@link #free}.
   *
   * @param size the number of bytes
   * @return the address; 0 if memory is exhausted
   */
  long allocate(long size);

  /**
   * Frees what {@link #allocate} returned.
   *
   * @param address the address; 0 is ignored
   */
  void free(long address);

  /**
   * The address of a direct buffer's first byte, which is valid while the buffer is reachable.
   *
   * @param direct the buffer
   * @return the address
   */
  long addressOf(Buffer direct);

  /**
   * Makes a direct buffer over memory. The caller keeps the memory alive while the buffer is used.
   *
   * @param address the address of the first byte
   * @param size the number of bytes
   * @return the buffer
   */
  ByteBuffer view(long address, int size);

  // --- Functions

  /**
   * Calls a function {@code void (*)(void*)}: the release callbacks.
   *
   * @param function the address of the function, not 0
   * @param argument the argument
   */
  void run(long function, long argument);

  /**
   * Calls a function.
   *
   * @param signature the signature
   * @param function the address of the function, not 0
   * @param arguments the arguments, as many as the signature has
   * @return the result; 0 for void
   */
  long call(String signature, long function, long... arguments);

  /**
   * Makes a function for C, which lives until {@link #close}: make one for each kind of callback.
   * What the callback throws is logged under the name, and C gets {@code failure}.
   *
   * @param name the name of the callback, for the log
   * @param signature the signature
   * @param failure the result when the callback throws
   * @param callback the callback, which C may call on any thread
   * @return the address of the function
   */
  long stub(String name, String signature, long failure, Callback callback);

  /**
   * Loads a library, which stays loaded, by its path or its name in the search path of the system.
   *
   * @param library the path or the name
   * @return a handle for {@link #symbol}; 0 when there is no such library
   */
  long load(String library);

  /**
   * The address of a symbol.
   *
   * @param library what {@link #load} returned; 0 is the standard library of C, on systems other
   *     than Windows
   * @param name the name of the symbol
   * @return the address; 0 when the library has no symbol of that name
   */
  long symbol(long library, String name);

  /**
   * Frees the functions for C, which are not called any more. The engine is not used afterwards.
   */
  void close();

  /** What runs when C calls a stub. Arguments that the signature does not have are 0. */
  interface Callback {
    /**
     * Runs the callback.
     *
     * @param first the first argument
     * @param second the second argument
     * @param third the third argument
     * @param fourth the fourth argument
     * @return the result, which is ignored for void
     */
    long run(long first, long second, long third, long fourth);
  }
}
