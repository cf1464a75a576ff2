// SPDX-License-Identifier: Apache-2.0

/**
 * The structs of the Arrow C interfaces for JNA, with their memory layout.
 *
 * <p>Each struct is a class with static accessors for its fields at an address; an accessor takes a
 * few nanoseconds and touches only its field. {@link com.sun.jna.Structure} is not used, because it
 * would write back a stale copy of the whole struct.
 *
 * <p>Each callback is an interface. Its {@code stub} creates a C function, and its {@code invoke}
 * calls one. {@code install} fills a struct with functions that find their object through
 * private_data. These functions live as long as the process and may be called on any thread: a
 * thread that C started is attached to the JVM as a daemon until it ends. An exception in a
 * callback is logged, and C gets the callback's failure value.
 *
 * <p>This package never frees or releases implicitly, and never checks data that foreign code
 * wrote.
 */
package io.github.fletching.jna.abi;
