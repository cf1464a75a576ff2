// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm.abi;

import com.sun.jna.Pointer;
import io.github.fletching.abi.StructOffsets;
import io.github.fletching.testing.AbiStruct;
import io.github.fletching.testing.ReflectedStruct;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodType;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/** A struct as the engine of java.lang.foreign declares it. */
final class FfmStruct extends ReflectedStruct {
  private final StructLayout layout;

  private FfmStruct(String name, StructLayout layout) {
    super(name, layout.byteSize(), layout.byteAlignment());
    this.layout = layout;
    addAll();
  }

  static List<AbiStruct> all() {
    return declared().stream()
        .map(StructOffsets::name)
        .map(name -> new FfmStruct(name, layout(classOf(FfmStruct.class, name))))
        .collect(Collectors.toList());
  }

  private static StructLayout layout(Class<?> struct) {
    return (StructLayout) constant(struct, "LAYOUT");
  }

  @Override
  protected MemorySegment pointer(long address) {
    return MemorySegment.ofAddress(address);
  }

  @Override
  protected long address(Object pointer) {
    return ((MemorySegment) pointer).address();
  }

  @Override
  protected MemorySegment struct(Pointer object) {
    return Abi.at(pointer(Pointer.nativeValue(object)), layout);
  }

  @Override
  protected long sizeOf(Class<?> struct) {
    return layout(struct).byteSize();
  }

  @Override
  protected Place place(String path, Place measured) {
    PathElement[] elements =
        Arrays.stream(path.split("\\.")).map(PathElement::groupElement).toArray(PathElement[]::new);
    return new Place(layout.byteOffset(elements), layout.select(elements).byteSize());
  }

  @Override
  protected MethodType signature(Class<?> callback) {
    return ((FunctionDescriptor) constant(callback, "DESCRIPTOR")).toMethodType();
  }
}
