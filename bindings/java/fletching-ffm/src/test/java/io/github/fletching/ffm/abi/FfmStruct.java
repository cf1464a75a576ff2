// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm.abi;

import com.sun.jna.Pointer;
import io.github.fletching.testing.AbiStruct;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodType;
import java.util.Arrays;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Function;

/** A struct that tests access through the generated accessors. */
final class FfmStruct extends AbiStruct {
  private final StructLayout layout;

  FfmStruct(String name, StructLayout layout) {
    super(name, layout.byteSize(), layout.byteAlignment());
    this.layout = layout;
  }

  /** Reads the bits of a value. */
  interface Reader {
    long read(MemorySegment object);
  }

  /** Writes the bits of a value. */
  interface Writer {
    void write(MemorySegment object, long bits);
  }

  /** Calls the function in the struct. */
  interface Caller {
    long call(MemorySegment object, long[] arguments);
  }

  /** Does the same for a callback without a result. */
  interface VoidCaller {
    void call(MemorySegment object, long[] arguments);
  }

  void field(String name) {
    addField(name, place(name));
  }

  void leaf(String path, int element, Reader reader, Writer writer) {
    Way accessors =
        new Way() {
          @Override
          public long read(Pointer object) {
            return reader.read(at(object));
          }

          @Override
          public void write(Pointer object, long bits) {
            writer.write(at(object), bits);
          }
        };
    addLeaf(new Leaf(path, element, Map.of("accessors", accessors)), place(path));
  }

  void callback(
      String name,
      FunctionDescriptor descriptor,
      Function<Recorder, MemorySegment> maker,
      BiConsumer<MemorySegment, MemorySegment> setter,
      Caller caller) {
    addCallback(
        new AbiStruct.CallbackField(name) {
          @Override
          protected MethodType type() {
            return descriptor.toMethodType();
          }

          @Override
          protected Object install(Pointer object, Recorder call) {
            setter.accept(at(object), maker.apply(call));
            return null;
          }

          @Override
          protected long invoke(Pointer object, long[] arguments) {
            return caller.call(at(object), arguments);
          }
        });
  }

  void voidCallback(
      String name,
      FunctionDescriptor descriptor,
      Function<Recorder, MemorySegment> maker,
      BiConsumer<MemorySegment, MemorySegment> setter,
      VoidCaller caller) {
    callback(
        name,
        descriptor,
        maker,
        setter,
        (object, arguments) -> {
          caller.call(object, arguments);
          return 0;
        });
  }

  private Place place(String path) {
    PathElement[] elements =
        Arrays.stream(path.split("\\.")).map(PathElement::groupElement).toArray(PathElement[]::new);
    MemoryLayout field = layout.select(elements);
    return new Place(layout.byteOffset(elements), field.byteSize());
  }

  private MemorySegment at(Pointer object) {
    return Abi.at(pointer(Pointer.nativeValue(object)), layout);
  }

  static long bits(long value) {
    return value;
  }

  static long bits(int value) {
    return Integer.toUnsignedLong(value);
  }

  static long bits(short value) {
    return Short.toUnsignedLong(value);
  }

  static long bits(byte value) {
    return Byte.toUnsignedLong(value);
  }

  static long bits(MemorySegment value) {
    return value.address();
  }

  static MemorySegment pointer(long bits) {
    return MemorySegment.ofAddress(bits);
  }
}
