// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.engine.Engine;
import io.github.fletching.abi.engine.Guarded;
import java.io.File;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The engine for java.lang.foreign. Addresses are JAVA_LONG in every signature. */
@SuppressWarnings("restricted")
final class FfmEngine implements Engine {
  /** All of memory: the offset is the address. */
  private static final MemorySegment MEMORY = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

  private static final Linker LINKER = Linker.nativeLinker();
  private static final MethodHandle RUN =
      LINKER.downcallHandle(FunctionDescriptor.ofVoid(JAVA_LONG));
  private static final MethodHandle CALLOC =
      standard("calloc", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG));
  private static final MethodHandle FREE = standard("free", FunctionDescriptor.ofVoid(JAVA_LONG));

  private final Map<String, MethodHandle> calls = new ConcurrentHashMap<>();
  private final Map<Long, SymbolLookup> libraries = new ConcurrentHashMap<>();
  private final Arena stubs = Arena.ofShared();

  FfmEngine() {
    if (pointerSize() != 8) {
      throw new UnsupportedOperationException("java.lang.foreign needs 64-bit pointers");
    }
  }

  private static MethodHandle standard(String name, FunctionDescriptor descriptor) {
    return LINKER.downcallHandle(LINKER.defaultLookup().find(name).orElseThrow(), descriptor);
  }

  @Override
  public LayoutClass target() {
    return LayoutClass.of(pointerSize(), (int) JAVA_LONG.byteAlignment());
  }

  @Override
  public int pointerSize() {
    return (int) ValueLayout.ADDRESS.byteSize();
  }

  @Override
  public byte getByte(long address) {
    return MEMORY.get(JAVA_BYTE, address);
  }

  @Override
  public int getInt(long address) {
    return MEMORY.get(JAVA_INT_UNALIGNED, address);
  }

  @Override
  public long getLong(long address) {
    return MEMORY.get(JAVA_LONG_UNALIGNED, address);
  }

  @Override
  public long getAddress(long address) {
    return MEMORY.get(JAVA_LONG_UNALIGNED, address);
  }

  @Override
  public void read(long address, byte[] into) {
    MemorySegment.copy(MEMORY, JAVA_BYTE, address, into, 0, into.length);
  }

  @Override
  public void putInt(long address, int value) {
    MEMORY.set(JAVA_INT_UNALIGNED, address, value);
  }

  @Override
  public void putLong(long address, long value) {
    MEMORY.set(JAVA_LONG_UNALIGNED, address, value);
  }

  @Override
  public void putAddress(long address, long value) {
    MEMORY.set(JAVA_LONG_UNALIGNED, address, value);
  }

  @Override
  public void write(long address, byte[] from) {
    MemorySegment.copy(from, 0, MEMORY, JAVA_BYTE, address, from.length);
  }

  @Override
  public void copy(long from, long to, long size) {
    MemorySegment.copy(MEMORY, from, MEMORY, to, size);
  }

  @Override
  public long allocate(long size) {
    try {
      return (long) CALLOC.invokeExact(Math.max(size, 1), 1L);
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  @Override
  public void free(long address) {
    try {
      FREE.invokeExact(address);
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  @Override
  public long addressOf(Buffer direct) {
    return MemorySegment.ofBuffer(direct).address();
  }

  @Override
  public ByteBuffer view(long address, int size) {
    return MemorySegment.ofAddress(address).reinterpret(size).asByteBuffer();
  }

  @Override
  public void run(long function, long argument) {
    try {
      RUN.invokeExact(MemorySegment.ofAddress(function), argument);
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  @Override
  public long call(String signature, long function, long... arguments) {
    MethodHandle call = calls.get(signature); // takes no lock
    if (call == null) {
      call = calls.computeIfAbsent(signature, FfmEngine::spread);
    }
    try {
      return (long) call.invokeExact(MemorySegment.ofAddress(function), arguments);
    } catch (Throwable thrown) {
      throw unexpected(thrown);
    }
  }

  /** Returns the function's handle with all integers as long, and the arguments in an array. */
  private static MethodHandle spread(String signature) {
    MethodHandle call = LINKER.downcallHandle(descriptor(signature));
    MethodType longs = call.type().changeReturnType(long.class);
    for (int i = 1; i < longs.parameterCount(); i++) {
      longs = longs.changeParameterType(i, long.class);
    }
    return MethodHandles.explicitCastArguments(call, longs)
        .asSpreader(1, long[].class, signature.length() - 1);
  }

  @Override
  public long stub(String name, String signature, long failure, Callback callback) {
    FunctionDescriptor descriptor = descriptor(signature);
    int unused = 4 - descriptor.argumentLayouts().size();
    Object[] zeros = new Object[unused];
    Arrays.fill(zeros, 0L);
    try {
      MethodHandle run =
          MethodHandles.lookup()
              .bind(
                  new Guarded(name, failure, callback),
                  "run",
                  MethodType.methodType(
                      long.class, long.class, long.class, long.class, long.class));
      run = MethodHandles.insertArguments(run, 4 - unused, zeros);
      run = MethodHandles.explicitCastArguments(run, descriptor.toMethodType());
      return LINKER.upcallStub(run, descriptor, stubs).address();
    } catch (ReflectiveOperationException e) {
      throw new LinkageError("Guarded.run cannot be found", e);
    }
  }

  static FunctionDescriptor descriptor(String signature) {
    MemoryLayout[] arguments = new MemoryLayout[signature.length() - 1];
    for (int i = 0; i < arguments.length; i++) {
      arguments[i] = layout(signature.charAt(i + 1));
    }
    return signature.charAt(0) == 'v'
        ? FunctionDescriptor.ofVoid(arguments)
        : FunctionDescriptor.of(layout(signature.charAt(0)), arguments);
  }

  private static MemoryLayout layout(char kind) {
    return switch (kind) {
      case 'i' -> JAVA_INT;
      case 'l', 'a' -> JAVA_LONG;
      default -> throw new IllegalArgumentException("signature: " + kind + ": expected i, l or a");
    };
  }

  @Override
  public long load(String library) {
    try {
      String path = library.replace('/', File.separatorChar);
      SymbolLookup found = SymbolLookup.libraryLookup(path, Arena.global());
      synchronized (libraries) {
        libraries.put(libraries.size() + 1L, found);
        return libraries.size();
      }
    } catch (IllegalArgumentException e) {
      return 0;
    }
  }

  @Override
  public long symbol(long library, String name) {
    SymbolLookup lookup = library == 0 ? LINKER.defaultLookup() : libraries.get(library);
    return lookup.find(name).map(MemorySegment::address).orElse(0L);
  }

  @Override
  public void close() {
    stubs.close();
  }

  /** Rethrows. A C function's handle declares Throwable, but C cannot throw. */
  @SuppressWarnings("unchecked")
  private static <T extends Throwable> RuntimeException unexpected(Throwable thrown) throws T {
    throw (T) thrown;
  }
}
