// SPDX-License-Identifier: Apache-2.0

/**
 * The structs of the Arrow C interfaces for java.lang.foreign, as they are in memory.
 *
 * <p>Each struct is a class that holds its layout and static accessors of its fields in a {@link
 * java.lang.foreign.MemorySegment}; {@code at} makes such a segment from a pointer.
 *
 * <p>Each callback is an interface with its signature, {@code stub}, which makes a function for C,
 * and {@code invoke}, which calls C's. {@code install} fills a struct with functions that find
 * their object by private_data. They live as long as the process, so that C may call a release at
 * any time and on any thread: one that C started is attached to the JVM as a daemon until it ends.
 * What a callback throws is logged, and C gets the value with which the callback fails.
 *
 * <p>Nothing here allocates, frees or releases on its own, and nothing checks what foreign code
 * wrote.
 *
 * <p>java.lang.foreign runs on targets with 64-bit pointers only; elsewhere the classes refuse to
 * load. The accessors of a segment that has a size need no native access. Everything else does:
 * {@code --enable-native-access=io.github.fletching.ffm} on the module path, {@code ALL-UNNAMED} on
 * the class path.
 */
package io.github.fletching.ffm.abi;
