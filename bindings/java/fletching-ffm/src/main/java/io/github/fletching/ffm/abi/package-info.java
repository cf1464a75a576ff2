// SPDX-License-Identifier: Apache-2.0

/**
 * The structs of the Arrow C interfaces for java.lang.foreign, as they lie in memory.
 *
 * <p>Each struct is a class that holds its layout and static accessors of its fields in a {@link
 * java.lang.foreign.MemorySegment}; the methods {@code at} make such a segment from a pointer. Each
 * callback is an interface with its signature, a function for C that calls it, and a way to call
 * C's. Nothing here allocates, frees or calls a release on its own, and nothing checks what foreign
 * code wrote.
 *
 * <p>java.lang.foreign runs on targets with 64-bit pointers only; elsewhere the classes refuse to
 * load. Calling C needs {@code --enable-native-access}, or the JVM prints a warning.
 */
package io.github.fletching.ffm.abi;
