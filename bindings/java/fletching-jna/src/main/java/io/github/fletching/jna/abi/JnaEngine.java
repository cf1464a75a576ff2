// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.engine.Engine;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The engine for JNA. */
final class JnaEngine implements Engine {
  /** All of memory: the offset is the address, so that no access allocates an object. */
  private static final Pointer MEMORY = new Pointer(0);

  private static final Class<?>[] TYPES = {void.class, int.class, long.class, Pointer.class};
  private static final NativeCall RELEASE = new NativeCall("va");

  static {
    // The JVM resolves a native method at its first call, which frees the text that dlerror
    // returned. This resolves the method that reads the text in advance.
    long any = Native.malloc(1);
    MEMORY.getByte(any);
    Native.free(any);
  }

  private final Map<String, NativeCall> calls = new ConcurrentHashMap<>();
  private final Map<Long, NativeLibrary> libraries = new ConcurrentHashMap<>();

  @Override
  public LayoutClass target() {
    return Abi.TARGET;
  }

  @Override
  public int pointerSize() {
    return Abi.POINTER_SIZE;
  }

  @Override
  public byte getByte(long address) {
    return MEMORY.getByte(address);
  }

  @Override
  public int getInt(long address) {
    return MEMORY.getInt(address);
  }

  @Override
  public long getLong(long address) {
    return MEMORY.getLong(address);
  }

  @Override
  public long getAddress(long address) {
    return NativeCall.getAddress(address);
  }

  @Override
  public void read(long address, byte[] into) {
    MEMORY.read(address, into, 0, into.length);
  }

  @Override
  public void putInt(long address, int value) {
    MEMORY.setInt(address, value);
  }

  @Override
  public void putLong(long address, long value) {
    MEMORY.setLong(address, value);
  }

  @Override
  public void putAddress(long address, long value) {
    NativeCall.putAddress(address, value);
  }

  @Override
  public void write(long address, byte[] from) {
    MEMORY.write(address, from, 0, from.length);
  }

  @Override
  public void copy(long from, long to, long size) {
    MEMORY.write(to, MEMORY.getByteArray(from, (int) size), 0, (int) size); // only used for structs
  }

  @Override
  public long allocate(long size) {
    long address = Native.malloc(Math.max(size, 1));
    if (address != 0) {
      MEMORY.setMemory(address, size, (byte) 0);
    }
    return address;
  }

  @Override
  public void free(long address) {
    Native.free(address);
  }

  @Override
  public long addressOf(Buffer direct) {
    return Pointer.nativeValue(Native.getDirectBufferPointer(direct));
  }

  @Override
  public ByteBuffer view(long address, int size) {
    return MEMORY.getByteBuffer(address, size);
  }

  @Override
  public void run(long function, long argument) {
    RELEASE.run(function, argument);
  }

  @Override
  public long call(String signature, long function, long... arguments) {
    return calls.computeIfAbsent(signature, NativeCall::new).call(function, arguments);
  }

  @Override
  public long stub(String name, String signature, long failure, Callback callback) {
    Class<?>[] types = new Class<?>[signature.length() - 1];
    for (int i = 0; i < types.length; i++) {
      types[i] = type(signature.charAt(i + 1));
    }
    char result = signature.charAt(0);
    Stub.Body body =
        a -> value(result, callback.run(number(a, 0), number(a, 1), number(a, 2), number(a, 3)));
    return Pointer.nativeValue(Abi.stub(name, type(result), value(result, failure), body, types));
  }

  @Override
  public long load(String library) {
    try {
      NativeLibrary found = NativeLibrary.getInstance(library);
      synchronized (libraries) {
        libraries.put(libraries.size() + 1L, found);
        return libraries.size();
      }
    } catch (UnsatisfiedLinkError e) {
      return 0;
    }
  }

  @Override
  public long symbol(long library, String name) {
    try {
      NativeLibrary found = library == 0 ? NativeLibrary.getProcess() : libraries.get(library);
      return Pointer.nativeValue(found.getGlobalVariableAddress(name));
    } catch (UnsatisfiedLinkError e) {
      return 0;
    }
  }

  @Override
  public void close() {} // JNA keeps every function, and its body's class loader

  private static Class<?> type(char kind) {
    return TYPES[NativeCall.indexOf(kind)];
  }

  private static Object value(char kind, long number) {
    switch (kind) {
      case 'v':
        return null;
      case 'i':
        return (int) number;
      case 'l':
        return number;
      default:
        return new Pointer(number);
    }
  }

  private static long number(Object[] values, int index) {
    Object value = index < values.length ? values[index] : null;
    return value instanceof Number
        ? ((Number) value).longValue()
        : Pointer.nativeValue((Pointer) value);
  }
}
