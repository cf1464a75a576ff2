// SPDX-License-Identifier: Apache-2.0

/**
 * The structs of the Arrow C interfaces for JNA, as they lie in memory.
 *
 * <p>Each struct is there twice: as a {@link com.sun.jna.Structure} with public fields, and as
 * static accessors of its fields at an address. {@code Structure.read} and {@code write} copy the
 * whole struct and take about half a microsecond; an accessor takes a few nanoseconds.
 *
 * <p>A callback is an interface. {@link com.sun.jna.CallbackReference#getFunctionPointer} turns an
 * instance into a pointer for the struct; the instance has to be reachable for as long as C may
 * call it. Nothing here allocates, frees or calls a release on its own, and nothing checks what
 * foreign code wrote.
 */
package io.github.fletching.jna.abi;
