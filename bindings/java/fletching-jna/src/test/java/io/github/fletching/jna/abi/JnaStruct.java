// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import com.sun.jna.Pointer;
import io.github.fletching.abi.StructOffsets;
import io.github.fletching.testing.AbiStruct;
import io.github.fletching.testing.ReflectedStruct;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.util.List;
import java.util.stream.Collectors;

/** A struct as JNA's engine declares it. */
final class JnaStruct extends ReflectedStruct {
  private JnaStruct(StructOffsets offsets) {
    super(offsets.name(), Abi.sizeOf(offsets), offsets.align(Abi.TARGET));
    addAll();
  }

  static List<AbiStruct> all() {
    return declared().stream().map(JnaStruct::new).collect(Collectors.toList());
  }

  @Override
  protected Pointer pointer(long address) {
    return address == 0 ? null : new Pointer(address);
  }

  @Override
  protected long address(Object pointer) {
    return Pointer.nativeValue((Pointer) pointer);
  }

  @Override
  protected Pointer struct(Pointer object) {
    return object;
  }

  @Override
  protected long sizeOf(Class<?> struct) {
    return (int) constant(struct, "SIZE");
  }

  @Override
  protected MethodType signature(Class<?> callback) {
    Method method = find(callback, "callback", -1);
    return MethodType.methodType(method.getReturnType(), method.getParameterTypes());
  }
}
