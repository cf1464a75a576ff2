// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import com.sun.jna.Callback;
import com.sun.jna.CallbackReference;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import io.github.fletching.testing.AbiStruct;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Function;

/** A struct whose values are reached as fields of a Structure, and through the accessors. */
final class JnaStruct<S extends AbiStructure> extends AbiStruct {
  private final Function<Pointer, S> at;
  private final S own;

  JnaStruct(String name, Function<Pointer, S> at) {
    this(name, at, at.apply(Pointer.NULL));
  }

  private JnaStruct(String name, Function<Pointer, S> at, S own) {
    super(name, own.size(), own.alignment());
    this.at = at;
    this.own = own;
  }

  /** Reads bits out of an object: a pointer or a Structure. */
  interface Reader<T> {
    long read(T object);
  }

  /** Writes bits into one. */
  interface Writer<T> {
    void write(T object, long bits);
  }

  /** Calls what is in the struct. */
  interface Caller {
    long call(Pointer object, long[] arguments);
  }

  /** The same for a callback without a result. */
  interface VoidCaller {
    void call(Pointer object, long[] arguments);
  }

  void field(String name, String javaName) {
    addField(name, place(javaName));
  }

  void leaf(
      String path,
      String javaPath,
      int element,
      Reader<Pointer> reader,
      Writer<Pointer> writer,
      Reader<S> fieldReader,
      Writer<S> fieldWriter) {
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
    Way fields =
        new Way() {
          @Override
          public long read(Pointer object) {
            S struct = at.apply(object);
            struct.read();
            return fieldReader.read(struct);
          }

          @Override
          public void write(Pointer object, long bits) {
            S struct = at.apply(object);
            struct.read();
            fieldWriter.write(struct, bits);
            struct.write();
          }
        };
    Map<String, Way> ways = Map.of("accessors", accessors, "fields", fields);
    addLeaf(new Leaf(path, element, ways), place(javaPath));
  }

  <C extends Callback> void callback(
      String name,
      Class<C> type,
      Function<Recorder, C> maker,
      BiConsumer<Pointer, Pointer> setter,
      Caller caller) {
    addCallback(
        new AbiStruct.CallbackField(name) {
          @Override
          protected MethodType type() {
            Method method =
                Arrays.stream(type.getDeclaredMethods())
                    .filter(m -> m.getName().equals(Callback.METHOD_NAME))
                    .findFirst()
                    .orElseThrow();
            return MethodType.methodType(method.getReturnType(), method.getParameterTypes());
          }

          @Override
          protected Object install(Pointer object, Recorder call) {
            C callback = maker.apply(call);
            setter.accept(object, CallbackReference.getFunctionPointer(callback));
            return callback;
          }

          @Override
          protected long invoke(Pointer object, long[] arguments) {
            return caller.call(object, arguments);
          }
        });
  }

  <C extends Callback> void voidCallback(
      String name,
      Class<C> type,
      Function<Recorder, C> maker,
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

  /** Where JNA puts a field, and how large it is. */
  private Place place(String javaPath) {
    AbiStructure owner = own;
    long offset = 0;
    String[] names = javaPath.split("\\.");
    for (int i = 0; i < names.length - 1; i++) {
      offset += owner.offset(names[i]);
      owner = (AbiStructure) value(owner, names[i]);
    }
    String last = names[names.length - 1];
    Class<?> type = javaField(owner, last).getType();
    return new Place(offset + owner.offset(last), Native.getNativeSize(type, value(owner, last)));
  }

  private static Object value(AbiStructure struct, String field) {
    try {
      return javaField(struct, field).get(struct);
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Field javaField(AbiStructure struct, String field) {
    try {
      return struct.getClass().getField(field);
    } catch (NoSuchFieldException e) {
      throw new IllegalStateException(e);
    }
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
