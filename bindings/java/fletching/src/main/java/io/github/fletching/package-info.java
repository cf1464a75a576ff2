// SPDX-License-Identifier: Apache-2.0

/**
 * Owners, builders and streams of the Arrow C data, stream and device interfaces, and tensors of
 * DLPack.
 *
 * <p>An address is the only thing that crosses a boundary: {@code wrap(long)} moves a struct in,
 * {@code moveTo(long)} moves it out. So code in another class loader, another copy of this library
 * and any library in C can be on the other side.
 *
 * <p>What calls C is {@code fletching-ffm} or {@code fletching-jna}: with both on the path the
 * first is used where Java has java.lang.foreign. The system property {@code
 * io.github.fletching.engine} chooses, {@code ffm} or {@code jna}.
 *
 * <p>Errors: {@link io.github.fletching.FletchingException} has an errno value. An owner that is
 * used after {@code close} or a move is an {@link IllegalStateException}. What a callback of Java
 * throws never reaches C.
 *
 * <p>Threads: several threads may read, change and close an owner at once. A close waits for the
 * reads that have begun, and a later read throws an {@link IllegalStateException}. A release may
 * run on any thread, and so do the objects that are closed with it.
 */
package io.github.fletching;
