// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.bench;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.Offsets;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.file.Path;

/** The peer in C: native.c. Its calls cost the same in every program. */
final class Peer {
  static final int COLUMNS = 1000;
  static final int ROWS = 64;

  private static final Linker LINKER = Linker.nativeLinker();
  private static final SymbolLookup LIBRARY =
      SymbolLookup.libraryLookup(Path.of(System.getProperty("bench.library")), Arena.global());
  private static final long SIZE = Offsets.ARROW_DEVICE_ARRAY.size(LayoutClass.of(8, 8));
  private static final MethodHandle CONSUME = function("peer_consume", JAVA_LONG);
  private static final MethodHandle TENSOR = function("bench_tensor", JAVA_LONG);
  private static final MethodHandle CALL = function("bench_call", JAVA_LONG, JAVA_LONG);
  private static final long NOTHING = nothing();

  /** Memory for a device array. */
  private static final MemorySegment RAW = Arena.global().allocate(SIZE, 8);

  private static final MemorySegment LEAF = Arena.global().allocate(SIZE, 8);

  private Peer() {}

  private static MethodHandle function(String name, MemoryLayout... arguments) {
    return LINKER.downcallHandle(
        LIBRARY.find(name).orElseThrow(), FunctionDescriptor.ofVoid(arguments));
  }

  private static long nothing() {
    try {
      MethodHandle body =
          MethodHandles.lookup()
              .findStatic(Peer.class, "ignore", MethodType.methodType(void.class, long.class));
      return LINKER
          .upcallStub(body, FunctionDescriptor.ofVoid(JAVA_LONG), Arena.global())
          .address();
    } catch (ReflectiveOperationException e) {
      throw new LinkageError("Peer.ignore cannot be found", e);
    }
  }

  static void ignore(long argument) {}

  /** Creates the leaf that {@link #leaf} copies. */
  static void setUp(long length) throws Throwable {
    function("bench_leaf", JAVA_LONG, JAVA_LONG).invokeExact(LEAF.address(), length);
  }

  static long raw() {
    return RAW.address();
  }

  /** Returns the address of a C device array that owns nothing. */
  static long leaf() {
    MemorySegment.copy(LEAF, 0, RAW, 0, SIZE);
    return RAW.address();
  }

  /** Returns one data address per column. */
  static long[] data() throws Throwable {
    MethodHandle data =
        LINKER.downcallHandle(
            LIBRARY.find("peer_data").orElseThrow(), FunctionDescriptor.of(ADDRESS));
    MemorySegment list = (MemorySegment) data.invokeExact();
    return list.reinterpret(COLUMNS * JAVA_LONG.byteSize()).toArray(JAVA_LONG);
  }

  /** Consumes the array in C: moves it, reads every child, and releases it. */
  static void consume(long array) throws Throwable {
    CONSUME.invokeExact(array);
  }

  /** Converts the array to DLPack and back in C, and releases it. */
  static void passAsTensor(long array) throws Throwable {
    TENSOR.invokeExact(array);
  }

  /** Calls a C function that calls an empty Java method. */
  static void downAndUp() throws Throwable {
    CALL.invokeExact(NOTHING, 0L);
  }
}
