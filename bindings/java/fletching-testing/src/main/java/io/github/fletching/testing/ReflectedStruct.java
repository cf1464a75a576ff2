// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.abi.Offsets;
import io.github.fletching.abi.StructOffsets;
import java.lang.invoke.MethodType;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** A struct that tests access through its generated class: accessors and callbacks, by name. */
public abstract class ReflectedStruct extends AbiStruct {
  // Upstream's embedded structs. A field of the binding that is missing here has no leaves, which
  // the oracle reports.
  private static final Map<String, String> EMBEDDED =
      Map.of(
          "ArrowDeviceArray.array", "ArrowArray",
          "DLTensor.device", "DLDevice",
          "DLTensor.dtype", "DLDataType",
          "DLManagedTensor.dl_tensor", "DLTensor",
          "DLManagedTensorVersioned.version", "DLPackVersion",
          "DLManagedTensorVersioned.dl_tensor", "DLTensor",
          "DLPackExchangeAPIHeader.version", "DLPackVersion",
          "DLPackExchangeAPI.header", "DLPackExchangeAPIHeader");

  /** Creates a struct without fields. */
  protected ReflectedStruct(String name, long size, long align) {
    super(name, size, align);
  }

  /** Returns every struct, in the order of declaration. */
  protected static List<StructOffsets> declared() {
    return Arrays.stream(Offsets.class.getFields())
        .map(field -> (StructOffsets) constant(field))
        .collect(Collectors.toList());
  }

  /** Returns the value of a static field of a struct's class, such as {@code SIZE}. */
  protected static Object constant(Class<?> type, String field) {
    try {
      return constant(type.getField(field));
    } catch (NoSuchFieldException e) {
      throw new LinkageError(type.getName(), e);
    }
  }

  private static Object constant(Field field) {
    try {
      return field.get(null);
    } catch (IllegalAccessException e) {
      throw new LinkageError(field.toString(), e);
    }
  }

  /** Returns the engine's pointer for an address. */
  protected abstract Object pointer(long address);

  /** Returns the address of one of the engine's pointers. */
  protected abstract long address(Object pointer);

  /** Returns the engine's pointer to a struct of this type. */
  protected abstract Object struct(Pointer object);

  /** Returns the size of a struct, whose class this is. */
  protected abstract long sizeOf(Class<?> struct);

  /** Returns the signature of a callback, whose class this is. */
  protected abstract MethodType signature(Class<?> callback);

  /** Returns the place of a field; {@code measured} is the place that its accessors access. */
  protected Place place(String path, Place measured) {
    return measured;
  }

  /** Adds all fields and callbacks. */
  protected final void addAll() {
    addFields(name, "", List.of());
    for (String field : fields) {
      for (Class<?> inner : classOf(name).getDeclaredClasses()) {
        if (inner.getSimpleName().equals(pascal(field)) && find(inner, "stub", 1) != null) {
          addCallback(new ReflectedCallback(field, inner));
        }
      }
    }
  }

  private void addFields(String owner, String prefix, List<Method> outer) {
    StructOffsets struct =
        declared().stream().filter(s -> s.name().equals(owner)).findFirst().orElseThrow();
    for (String field : struct.fields()) {
      String path = prefix + field;
      Value value = new Value(outer, classOf(owner), pascal(field));
      String embedded = EMBEDDED.get(owner + "." + field);
      Place place = place(path, value.setter == null ? value.embedded(embedded) : value.measure());
      if (outer.isEmpty()) {
        addField(field, place);
      }
      if (value.setter != null) {
        for (int i = 0; i < value.elements; i++) {
          addLeaf(new Leaf(path, i, value.element(i)), place);
        }
      } else if (embedded != null) {
        List<Method> getters = new ArrayList<>(outer);
        getters.add(value.getter);
        addFields(embedded, path + ".", getters);
      }
    }
  }

  private Class<?> classOf(String struct) {
    return classOf(getClass(), struct);
  }

  /** Returns the class of a struct, in the package of {@code engine}. */
  protected static Class<?> classOf(Class<?> engine, String struct) {
    try {
      return Class.forName(engine.getPackageName() + "." + struct);
    } catch (ClassNotFoundException e) {
      throw new LinkageError(struct, e);
    }
  }

  /** The accessors of a field. An embedded struct has no setter. */
  private final class Value {
    final List<Method> outer; // the getters of the structs that embed the field's
    final Method getter;
    final Method setter;
    final int elements; // 1 unless the field is an array, whose accessors take an int

    Value(List<Method> outer, Class<?> owner, String name) {
      this.outer = outer;
      Method single = find(owner, "get" + name, 1);
      getter = single == null ? find(owner, "get" + name, 2) : single;
      setter = find(owner, "set" + name, single == null ? 3 : 2);
      elements = single == null ? count() : 1;
    }

    private int count() {
      Memory memory = memory();
      for (int i = 0; ; i++) {
        try {
          element(i).read(memory);
        } catch (IndexOutOfBoundsException e) {
          return i;
        }
      }
    }

    private Memory memory() {
      Memory memory = new Memory(size + 64);
      memory.setMemory(0, memory.size(), (byte) -1);
      return memory;
    }

    /** Returns the bytes that the setter changes. */
    Place measure() {
      Memory memory = memory();
      for (int i = 0; i < elements; i++) {
        element(i).write(memory, 0);
      }
      byte[] bytes = memory.getByteArray(0, (int) memory.size());
      int start = 0;
      while (start < bytes.length && bytes[start] != 0) {
        start++;
      }
      int end = start;
      while (end < bytes.length && bytes[end] == 0) {
        end++;
      }
      return new Place(start, end - start);
    }

    Place embedded(String struct) {
      Memory memory = memory();
      long offset = address(call(getter, owner(memory))) - Pointer.nativeValue(memory);
      return new Place(offset, struct == null ? 0 : sizeOf(classOf(struct)));
    }

    private Object owner(Pointer object) {
      Object place = struct(object);
      for (Method each : outer) {
        place = call(each, place);
      }
      return place;
    }

    Way element(int index) {
      return new Way() {
        @Override
        public long read(Pointer object) {
          Object place = owner(object);
          return bits(
              getter.getParameterCount() == 1 ? call(getter, place) : call(getter, place, index));
        }

        @Override
        public void write(Pointer object, long bits) {
          Object place = owner(object);
          Class<?>[] types = setter.getParameterTypes();
          Object value = fromBits(types[types.length - 1], bits);
          if (types.length == 2) {
            call(setter, place, value);
          } else {
            call(setter, place, index, value);
          }
        }
      };
    }
  }

  private final class ReflectedCallback extends CallbackField {
    private final Class<?> type;
    private final Value field;

    ReflectedCallback(String name, Class<?> type) {
      super(name);
      this.type = type;
      this.field = new Value(List.of(), classOf(ReflectedStruct.this.name), pascal(name));
    }

    @Override
    protected MethodType type() {
      return signature(type);
    }

    @Override
    protected Object install(Pointer object, Recorder call) {
      Object callback =
          Proxy.newProxyInstance(
              type.getClassLoader(),
              new Class<?>[] {type},
              (proxy, method, arguments) -> {
                long[] seen =
                    Arrays.stream(arguments).mapToLong(ReflectedStruct.this::bits).toArray();
                return fromBits(method.getReturnType(), call.record(seen));
              });
      field.element(0).write(object, address(call(find(type, "stub", 1), callback)));
      return callback;
    }

    @Override
    protected long invoke(Pointer object, long[] arguments) {
      Method invoke = find(type, "invoke", -1);
      Class<?>[] types = invoke.getParameterTypes();
      Object[] values = new Object[types.length];
      values[0] = pointer(field.element(0).read(object));
      for (int i = 1; i < types.length; i++) {
        values[i] = fromBits(types[i], arguments[i - 1]);
      }
      return bits(call(invoke, values));
    }
  }

  private long bits(Object value) {
    if (value instanceof Long) {
      return (Long) value;
    }
    if (value instanceof Integer) {
      return Integer.toUnsignedLong((Integer) value);
    }
    if (value instanceof Short) {
      return Short.toUnsignedLong((Short) value);
    }
    if (value instanceof Byte) {
      return Byte.toUnsignedLong((Byte) value);
    }
    return value == null ? 0 : address(value);
  }

  private Object fromBits(Class<?> type, long bits) {
    if (type == void.class) {
      return null;
    }
    if (type == long.class) {
      return bits;
    }
    if (type == int.class) {
      return (int) bits;
    }
    if (type == short.class) {
      return (short) bits;
    }
    return type == byte.class ? (Object) (byte) bits : pointer(bits);
  }

  /** Returns the method with this name and number of parameters, if not -1; null for none. */
  protected static Method find(Class<?> type, String name, int parameters) {
    return Arrays.stream(type.getMethods())
        .filter(method -> method.getName().equals(name))
        .filter(method -> parameters == -1 || method.getParameterCount() == parameters)
        .findFirst()
        .orElse(null);
  }

  private static Object call(Method method, Object... arguments) {
    try {
      return method.invoke(null, arguments);
    } catch (InvocationTargetException e) {
      if (e.getCause() instanceof RuntimeException) {
        throw (RuntimeException) e.getCause();
      }
      throw new IllegalStateException(method.toString(), e.getCause());
    } catch (IllegalAccessException e) {
      throw new LinkageError(method.toString(), e);
    }
  }

  /** Returns {@code NullCount} for {@code null_count}. */
  private static String pascal(String field) {
    return Arrays.stream(field.split("_"))
        .map(part -> part.substring(0, 1).toUpperCase(Locale.ROOT) + part.substring(1))
        .collect(Collectors.joining());
  }
}
