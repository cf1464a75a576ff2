// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm.abi;

import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.StructOffsets;
import io.github.fletching.abi.engine.Failures;
import io.github.fletching.abi.engine.Handles;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.List;
import java.util.Optional;

/** Helpers that the generated structs share. */
final class Abi {
  private static final LayoutClass TARGET = target();
  private static final MethodHandle LOG =
      find(Failures.class, "log", MethodType.methodType(void.class, String.class, Throwable.class));

  private Abi() {}

  private static LayoutClass target() {
    long pointer = ValueLayout.ADDRESS.byteSize();
    if (pointer != 8) {
      throw new UnsupportedOperationException(
          "java.lang.foreign needs 64-bit pointers; here they have " + pointer + " bytes");
    }
    return LayoutClass.of(8, (int) ValueLayout.JAVA_LONG.byteAlignment());
  }

  /** Returns the layout of a struct after comparing it with the layout that Arrow specifies. */
  static StructLayout layout(StructOffsets expected, MemoryLayout... members) {
    StructLayout layout = MemoryLayout.structLayout(members).withName(expected.name());
    check(expected.name(), "size", layout.byteSize(), expected.size(TARGET));
    check(expected.name(), "alignment", layout.byteAlignment(), expected.align(TARGET));
    List<String> names =
        layout.memberLayouts().stream().map(MemoryLayout::name).flatMap(Optional::stream).toList();
    if (!names.equals(expected.fields())) {
      throw new AssertionError(
          expected.name() + ": fields are " + names + ", expected " + expected.fields());
    }
    for (String name : names) {
      String field = expected.name() + "." + name;
      check(field, "offset", offsetOf(layout, name), expected.offset(TARGET, name));
    }
    return layout;
  }

  private static void check(String subject, String what, long own, long expected) {
    if (own != expected) {
      throw new AssertionError(
          String.format(
              "%s: %s is %d here, the Arrow specification says %d for %s targets",
              subject, what, own, expected, TARGET));
    }
  }

  static long offsetOf(StructLayout layout, String field) {
    return layout.byteOffset(PathElement.groupElement(field));
  }

  /** Returns a segment with the struct's size; never enlarges a segment that already has a size. */
  static MemorySegment at(MemorySegment pointer, StructLayout layout) {
    String struct = layout.name().orElse("struct");
    if (pointer.address() == 0) {
      throw new IllegalArgumentException(struct + ": NULL: expected a pointer to a struct");
    }
    return sized(pointer, layout.byteSize(), struct);
  }

  @SuppressWarnings("restricted")
  static MemorySegment sized(MemorySegment pointer, long size, String subject) {
    if (!pointer.isNative()) {
      throw new IllegalArgumentException(
          subject + ": segment of an array on the heap: expected native memory");
    }
    if (pointer.byteSize() == 0 && size > 0) {
      if (pointer.address() == 0) {
        throw new IllegalArgumentException(subject + ": NULL: expected " + size + " bytes");
      }
      return pointer.reinterpret(size);
    }
    if (pointer.byteSize() < size) {
      throw new IllegalArgumentException(
          subject + ": segment too small: expected " + size + " bytes, got " + pointer.byteSize());
    }
    return pointer.asSlice(0, size);
  }

  /** Returns false if both are the same struct. */
  static boolean copy(MemorySegment from, MemorySegment to, StructLayout layout) {
    if (from.address() == to.address()) {
      return false;
    }
    MemorySegment.copy(from, 0, to, 0, layout.byteSize());
    return true;
  }

  @SuppressWarnings("restricted")
  static String text(MemorySegment text) {
    return text.address() == 0 ? null : text.reinterpret(Long.MAX_VALUE).getString(0);
  }

  static MemorySegment entries(MemorySegment list, long count, ValueLayout layout) {
    return sized(list, Math.multiplyExact(count, layout.byteSize()), "list");
  }

  static MemorySegment requireStruct(
      String list, long index, MemorySegment struct, StructLayout layout) {
    if (struct.address() == 0) {
      throw new IllegalStateException(list + "[" + index + "]: NULL: expected a struct");
    }
    return at(struct, layout);
  }

  static void requireFunction(MemorySegment function, String name) {
    if (function.address() == 0) {
      throw new IllegalStateException(name + ": NULL: expected a function");
    }
  }

  @SuppressWarnings("restricted")
  static MethodHandle downcall(FunctionDescriptor descriptor) {
    return Linker.nativeLinker().downcallHandle(descriptor);
  }

  /**
   * Returns a C function that lives as long as the process. An exception must not leave Java,
   * because it would end the process: C gets {@code failure} instead, or NULL or void if that is
   * null.
   */
  @SuppressWarnings("restricted")
  static <T> MemorySegment stub(
      String name, Object failure, Class<T> type, T callback, FunctionDescriptor descriptor) {
    MethodHandle method = find(type, "callback", descriptor.toMethodType()).bindTo(callback);
    Class<?> returned = method.type().returnType();
    MethodHandle handler = MethodHandles.insertArguments(LOG, 0, name);
    if (returned != void.class) {
      Object value = failure == null ? MemorySegment.NULL : failure;
      handler = MethodHandles.filterReturnValue(handler, MethodHandles.constant(returned, value));
    }
    return Linker.nativeLinker()
        .upcallStub(
            MethodHandles.catchException(method, Throwable.class, handler),
            descriptor,
            Arena.global());
  }

  /** Calls DLPack's set_error, unless it is NULL. */
  static void report(MemorySegment setError, MemorySegment context, Throwable thrown) {
    if (setError.address() == 0) {
      return;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment kind = arena.allocateFrom(Failures.kind(thrown));
      MemorySegment message = arena.allocateFrom(thrown.toString().replace('\0', ' '));
      SetError.CALL.invokeExact(setError, context, kind, message);
    } catch (Throwable t) {
      throw unexpected(t);
    }
  }

  private static final class SetError {
    static final FunctionDescriptor DESCRIPTOR =
        FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.ADDRESS);
    static final MethodHandle CALL = downcall(DESCRIPTOR);
  }

  /** Rethrows. A C function's handle declares Throwable, but C cannot throw. */
  @SuppressWarnings("unchecked")
  static <T extends Throwable> RuntimeException unexpected(Throwable thrown) throws T {
    throw (T) thrown;
  }

  private static MethodHandle find(Class<?> owner, String name, MethodType type) {
    try {
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      return owner.isInterface()
          ? lookup.findVirtual(owner, name, type)
          : lookup.findStatic(owner, name, type);
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(owner.getName() + "." + name + " cannot be found", e);
    }
  }

  // --- private_data

  static MemorySegment add(Object object) {
    return MemorySegment.ofAddress(Handles.add(object));
  }

  static <T> T find(Class<T> type, MemorySegment privateData) {
    return Handles.find(type, privateData.address());
  }

  static <T> T take(Class<T> type, MemorySegment privateData) {
    return Handles.take(type, privateData.address());
  }

  static void remove(MemorySegment privateData) {
    Handles.remove(privateData.address());
  }
}
