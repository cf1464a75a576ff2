// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm.abi;

import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.StructOffsets;
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

/** What the generated structs have in common. */
final class Abi {
  /** What a callback that threw returns to C: EIO. */
  static final int EIO = 5;

  private static final LayoutClass TARGET = target();
  private static final Linker LINKER = Linker.nativeLinker();
  private static final System.Logger LOG = System.getLogger("io.github.fletching");
  private static final MethodHandle THROWN =
      find(Abi.class, "thrown", MethodType.methodType(void.class, Throwable.class), true);

  private Abi() {}

  private static LayoutClass target() {
    long pointer = ValueLayout.ADDRESS.byteSize();
    if (pointer != 8) {
      throw new UnsupportedOperationException(
          "java.lang.foreign needs 64-bit pointers; here they have " + pointer + " bytes");
    }
    return LayoutClass.of(8, (int) ValueLayout.JAVA_LONG.byteAlignment());
  }

  /** The layout of a struct, held against the one that Arrow specifies. */
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

  @SuppressWarnings("restricted")
  static MemorySegment at(MemorySegment pointer, StructLayout layout) {
    if (pointer.address() == 0) {
      throw new IllegalArgumentException(
          "a pointer to " + layout.name().orElse("a struct") + " is NULL");
    }
    return pointer.reinterpret(layout.byteSize());
  }

  static void requireFunction(MemorySegment function, String name) {
    if (function.address() == 0) {
      throw new IllegalStateException(name + " is NULL");
    }
  }

  @SuppressWarnings("restricted")
  static MethodHandle downcall(FunctionDescriptor descriptor) {
    return LINKER.downcallHandle(descriptor);
  }

  /** Whatever is thrown must not leave Java: that would end the process. */
  @SuppressWarnings("restricted")
  static <T> MemorySegment stub(
      Class<T> type, T callback, FunctionDescriptor descriptor, Arena arena) {
    MethodHandle method = find(type, "callback", descriptor.toMethodType(), false).bindTo(callback);
    MethodHandle result = resultAfterThrow(method.type().returnType());
    MethodHandle handler = MethodHandles.filterReturnValue(THROWN, result);
    return LINKER.upcallStub(
        MethodHandles.catchException(method, Throwable.class, handler), descriptor, arena);
  }

  private static MethodHandle resultAfterThrow(Class<?> type) {
    if (type == void.class) {
      return MethodHandles.empty(MethodType.methodType(void.class));
    }
    if (type == int.class) {
      return MethodHandles.constant(int.class, EIO);
    }
    if (type == MemorySegment.class) {
      return MethodHandles.constant(MemorySegment.class, MemorySegment.NULL);
    }
    return MethodHandles.zero(type);
  }

  @SuppressWarnings("unused") // by THROWN
  private static void thrown(Throwable thrown) {
    try {
      LOG.log(System.Logger.Level.ERROR, "a callback from C threw", thrown);
    } catch (Throwable ignored) {
      // There is nobody left to tell.
    }
  }

  /** The handle of a C function declares Throwable, but C throws nothing. */
  static RuntimeException unexpected(Throwable thrown) {
    if (thrown instanceof Error error) {
      throw error;
    }
    if (thrown instanceof RuntimeException exception) {
      return exception;
    }
    return new IllegalStateException(thrown);
  }

  private static MethodHandle find(Class<?> owner, String name, MethodType type, boolean isStatic) {
    try {
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      return isStatic
          ? lookup.findStatic(owner, name, type)
          : lookup.findVirtual(owner, name, type);
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(owner.getName() + "." + name + " cannot be found", e);
    }
  }
}
