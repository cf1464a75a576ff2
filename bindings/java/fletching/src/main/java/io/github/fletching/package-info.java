// SPDX-License-Identifier: Apache-2.0

/**
 * Owners, builders and streams of the Arrow C data, stream and device interfaces, and tensors of
 * DLPack.
 *
 * <p>Structs are exchanged by address: {@code wrap(long)} moves a struct in, {@code moveTo(long)}
 * moves it out. The other side may be code in another class loader, another copy of this library,
 * or any C library.
 *
 * <p>The engine that calls C is {@code fletching-ffm} or {@code fletching-jna}. If both are on the
 * path, the former is used where Java has java.lang.foreign. The system property {@code
 * io.github.fletching.engine} selects {@code ffm} or {@code jna}.
 *
 * <p>Errors: {@link io.github.fletching.FletchingException} has an errno value. Using an owner
 * after {@code close} or a move throws an {@link IllegalStateException}. Exceptions of Java
 * callbacks never reach C.
 *
 * <p>Threads: several threads may read, change and close an owner at once. A close waits for reads
 * in progress; a later read throws an {@link IllegalStateException}. A release may run on any
 * thread, and closes its objects on that thread.
 */
package io.github.fletching;
