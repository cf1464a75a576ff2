// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi.engine;

import io.github.fletching.abi.LayoutClass;
import java.nio.Buffer;
import java.nio.ByteBuffer;

/**
 * Access to C from Java: memory at an address, and function calls in both directions. Addresses and
 * function pointers are {@code long} values; 0 is NULL. Addresses are not checked. Thread-safe.
 *
 * <p>A signature has one character for the result and one for each argument: {@code v} for void,
 * {@code i} for int32_t, {@code l} for int64_t, {@code a} for an address. Example: {@code "iaa"}.
 */
public interface Engine {
  /**
   * The layout class of the current platform.
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
   * @param address where to read
   * @return the byte
   */
  byte getByte(long address);

  /**
   * Reads an int32_t.
   *
   * @param address where to read
   * @return the number
   */
  int getInt(long address);

  /**
   * Reads an int64_t.
   *
   * @param address where to read
   * @return the number
   */
  long getLong(long address);

  /**
   * Reads a pointer.
   *
   * @param address where to read
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
   * @param address where to write
   * @param value the number
   */
  void putInt(long address, int value);

  /**
   * Writes an int64_t.
   *
   * @param address where to write
   * @param value the number
   */
  void putLong(long address, long value);

  /**
   * Writes a pointer.
   *
   * @param address where to write
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
   * Copies bytes between two regions that must not overlap.
   *
   * @param from the address of the first byte to read
   * @param to the address of the first byte to write
   * @param size the number of bytes
   */
  void copy(long from, long to, long size);

  /**
   * Allocates zeroed C memory. The caller frees it with {@link #free}.
   *
   * @param size the number of bytes
   * @return the address; 0 if memory is exhausted
   */
  long allocate(long size);

  /**
   * Frees memory returned by {@link #allocate}.
   *
   * @param address the address; 0 is ignored
   */
  void free(long address);

  /**
   * The address of the first byte of a direct buffer. It is valid while the buffer is reachable.
   *
   * @param direct the buffer
   * @return the address
   */
  long addressOf(Buffer direct);

  /**
   * Creates a direct buffer over memory. The caller must keep the memory alive while the buffer is
   * in use.
   *
   * @param address the address of the first byte
   * @param size the number of bytes
   * @return the buffer
   */
  ByteBuffer view(long address, int size);

  // --- Functions

  /**
   * Calls a function {@code void (*)(void*)}, such as a release callback.
   *
   * @param function the address of the function, not 0
   * @param argument the argument passed to the function
   */
  void run(long function, long argument);

  /**
   * Calls a function.
   *
   * @param signature the types of the result and the arguments
   * @param function the address of the function, not 0
   * @param arguments the arguments, as many as the signature has
   * @return the result; 0 for void
   */
  long call(String signature, long function, long... arguments);

  /**
   * Creates a C function that is valid until {@link #close}. Create one per kind of callback. If
   * the callback throws, the exception is logged under the name, and C receives {@code failure}.
   *
   * @param name the name of the callback, for the log
   * @param signature the types of the result and the arguments
   * @param failure the result if the callback throws
   * @param callback the callback, which C may call on any thread
   * @return the address of the function
   */
  long stub(String name, String signature, long failure, Callback callback);

  /**
   * Loads a library by its path or by its name in the system's search path. It stays loaded.
   *
   * @param library the path or the name
   * @return a handle for {@link #symbol}; 0 if the library is not found
   */
  long load(String library);

  /**
   * The address of a symbol.
   *
   * @param library the result of {@link #load}; 0 is the C standard library, except on Windows
   * @param name the name of the symbol
   * @return the address; 0 if the library does not define the symbol
   */
  long symbol(long library, String name);

  /** Frees the C functions. C must not call them afterwards, and the engine must not be used. */
  void close();

  /** The Java code behind a stub. Arguments beyond the signature are 0. */
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
