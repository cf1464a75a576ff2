// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import com.sun.jna.CallbackReference;
import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Platform;
import com.sun.jna.Pointer;
import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.StructOffsets;
import io.github.fletching.abi.engine.Failures;
import io.github.fletching.abi.engine.Handles;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Helpers that the generated structs share. */
final class Abi {
  static final int POINTER_SIZE = Native.POINTER_SIZE;

  static final int TARGET_INT64_ALIGN = int64Align();

  /** The layout class of the running platform. */
  static final LayoutClass TARGET = LayoutClass.of(POINTER_SIZE, TARGET_INT64_ALIGN);

  // Kept reachable: C may call them until the process ends.
  private static final Queue<Stub> STUBS = new ConcurrentLinkedQueue<>();

  private Abi() {}

  /** Only the System V ABI of i386 aligns an int64_t member to 4 bytes. */
  private static int int64Align() {
    return Platform.isIntel() && !Platform.is64Bit() && !Platform.isWindows() ? 4 : 8;
  }

  static int sizeOf(StructOffsets struct) {
    return struct.size(TARGET);
  }

  static long offsetOf(StructOffsets struct, String field) {
    return struct.offset(TARGET, field);
  }

  static Memory allocate(int size) {
    Memory memory = new Memory(size);
    memory.clear();
    return memory;
  }

  /** Returns false if both are the same struct. */
  static boolean copy(Pointer from, Pointer to, int size) {
    if (from.equals(to)) {
      return false;
    }
    to.write(0, from.getByteArray(0, size), 0, size);
    return true;
  }

  static String text(Pointer text) {
    return text == null ? null : text.getString(0, "UTF-8");
  }

  static Pointer requireStruct(String list, long index, Pointer struct) {
    if (struct == null) {
      throw new IllegalStateException(list + "[" + index + "]: NULL: expected a struct");
    }
    return struct;
  }

  /** Calls a function pointer from a struct; {@code name} is its name in error messages. */
  static Object call(Class<?> result, Pointer function, String name, Object... arguments) {
    if (function == null) {
      throw new IllegalStateException(name + ": NULL: expected a function");
    }
    return Function.getFunction(function).invoke(result, arguments);
  }

  static Pointer stub(
      String name, Class<?> result, Object failure, Stub.Body body, Class<?>... arguments) {
    Stub stub = new Stub(name, result, failure, body, arguments);
    STUBS.add(stub);
    Native.setCallbackThreadInitializer(stub, Stub.FOREIGN_THREADS);
    return CallbackReference.getFunctionPointer(stub);
  }

  static Pointer voidStub(String name, Stub.VoidBody body, Class<?>... arguments) {
    Stub.Body returning =
        a -> {
          body.run(a);
          return null;
        };
    return stub(name, void.class, null, returning, arguments);
  }

  /** Calls DLPack's set_error, unless it is NULL. */
  static void report(Pointer setError, Pointer context, Throwable thrown) {
    if (setError != null) {
      Object[] arguments = {context, text(Failures.kind(thrown)), text(thrown.toString())};
      Function.getFunction(setError).invokeVoid(arguments);
    }
  }

  private static Memory text(String text) {
    byte[] bytes = Native.toByteArray(text, "UTF-8"); // with a NUL terminator
    Memory memory = new Memory(bytes.length);
    memory.write(0, bytes, 0, bytes.length);
    return memory;
  }

  // --- private_data

  static Pointer add(Object object) {
    return new Pointer(Handles.add(object));
  }

  static <T> T find(Class<T> type, Pointer privateData) {
    return Handles.find(type, Pointer.nativeValue(privateData));
  }

  static <T> T take(Class<T> type, Pointer privateData) {
    return Handles.take(type, Pointer.nativeValue(privateData));
  }

  static void remove(Pointer privateData) {
    Handles.remove(Pointer.nativeValue(privateData));
  }
}
