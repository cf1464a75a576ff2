// SPDX-License-Identifier: Apache-2.0

/**
 * The structs of the Arrow C interfaces for java.lang.foreign, with their memory layout.
 *
 * <p>Each struct is a class with its layout and static accessors for its fields in a {@link
 * java.lang.foreign.MemorySegment}; {@code at} creates such a segment from a pointer.
 *
 * <p>Each callback is an interface with its signature. Its {@code stub} creates a C function, and
 * its {@code invoke} calls one. {@code install} fills a struct with functions that find their
 * object through private_data. These functions live as long as the process, so C may call a release
 * at any time and on any thread: a thread that C started is attached to the JVM as a daemon until
 * it ends. An exception in a callback is logged, and C gets the callback's failure value.
 *
 * <p>This package never allocates, frees or releases implicitly, and never checks data that foreign
 * code wrote.
 *
 * <p>java.lang.foreign requires 64-bit pointers; on other targets the classes fail to load.
 * Accessors of a segment with a size need no native access. Everything else does: {@code
 * --enable-native-access=io.github.fletching.ffm} on the module path, {@code ALL-UNNAMED} on the
 * class path.
 */
package io.github.fletching.ffm.abi;
