// SPDX-License-Identifier: Apache-2.0

/**
 * The structs of the Arrow C interfaces for JNA, as they are in memory.
 *
 * <p>Each struct is a class with static accessors of its fields at an address; an accessor takes a
 * few nanoseconds and touches its field alone. There is no {@link com.sun.jna.Structure}: it would
 * write a stale copy of the whole struct back.
 *
 * <p>Each callback is an interface with {@code stub}, which makes a function for C, and {@code
 * invoke}, which calls C's. {@code install} fills a struct with functions that find their object by
 * private_data. They live as long as the process, and may be called on any thread: one that C
 * started is attached to the JVM as a daemon until it ends. What a callback throws is logged, and C
 * gets the value with which the callback fails.
 *
 * <p>Nothing here frees or releases on its own, and nothing checks what foreign code wrote.
 */
package io.github.fletching.jna.abi;
