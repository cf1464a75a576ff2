// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import com.sun.jna.Pointer;
import io.github.fletching.abi.StructOffsets;
import io.github.fletching.testing.AbiStruct;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Function;

/** A struct that tests access through the generated accessors. */
final class JnaStruct extends AbiStruct {
  private final StructOffsets offsets;

  JnaStruct(StructOffsets offsets, int size) {
    super(offsets.name(), size, offsets.align(Abi.TARGET));
    this.offsets = offsets;
  }

  /** Reads the bits of a value. */
  interface Reader {
    long read(Pointer object);
  }

  /** Writes the bits of a value. */
  interface Writer {
    void write(Pointer object, long bits);
  }

  /** Calls the function in the struct. */
  interface Caller {
    long call(Pointer object, long[] arguments);
  }

  /** Does the same for a callback without a result. */
  interface VoidCaller {
    void call(Pointer object, long[] arguments);
  }

  void field(String name, long size) {
    addField(name, new Place(Abi.offsetOf(offsets, name), size));
  }

  /** Adds a value; {@code owners} are the structs of the fields on its path. */
  void leaf(
      String path, int element, long size, Reader reader, Writer writer, StructOffsets... owners) {
    Way accessors =
        new Way() {
          @Override
          public long read(Pointer object) {
            return reader.read(object);
          }

          @Override
          public void write(Pointer object, long bits) {
            writer.write(object, bits);
          }
        };
    String[] names = path.split("\\.");
    long offset = 0;
    for (int i = 0; i < names.length; i++) {
      offset += Abi.offsetOf(owners[i], names[i]);
    }
    addLeaf(new Leaf(path, element, Map.of("accessors", accessors)), new Place(offset, size));
  }

  void callback(
      String name,
      Class<?> type,
      Function<Recorder, Pointer> maker,
      BiConsumer<Pointer, Pointer> setter,
      Caller caller) {
    addCallback(
        new AbiStruct.CallbackField(name) {
          @Override
          protected MethodType type() {
            Method method =
                Arrays.stream(type.getDeclaredMethods())
                    .filter(m -> m.getName().equals("callback"))
                    .findFirst()
                    .orElseThrow();
            return MethodType.methodType(method.getReturnType(), method.getParameterTypes());
          }

          @Override
          protected Object install(Pointer object, Recorder call) {
            setter.accept(object, maker.apply(call));
            return null;
          }

          @Override
          protected long invoke(Pointer object, long[] arguments) {
            return caller.call(object, arguments);
          }
        });
  }

  void voidCallback(
      String name,
      Class<?> type,
      Function<Recorder, Pointer> maker,
      BiConsumer<Pointer, Pointer> setter,
      VoidCaller caller) {
    callback(
        name,
        type,
        maker,
        setter,
        (object, arguments) -> {
          caller.call(object, arguments);
          return 0;
        });
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

  static long bits(Pointer value) {
    return Pointer.nativeValue(value);
  }

  static Pointer pointer(long bits) {
    return bits == 0 ? null : new Pointer(bits);
  }
}
