// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import io.github.fletching.ffm.abi.ArrowArray;
import io.github.fletching.ffm.abi.ArrowDeviceArray;
import io.github.fletching.ffm.abi.ArrowDeviceArrayStream;
import io.github.fletching.ffm.abi.ArrowSchema;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.function.BiConsumer;
import java.util.function.Function;

/** The structs through fletching-ffm. */
final class FfmStructs extends Structs {
  private static final MethodHandle CALLOC =
      downcall(
          "calloc",
          FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG));
  private static final MethodHandle FREE =
      downcall("free", FunctionDescriptor.ofVoid(ValueLayout.ADDRESS));

  FfmStructs() {
    super("java-ffm", ArrowDeviceArray.LAYOUT.byteSize());
    fillSchema();
    fillArray();
    fillStream();
  }

  private void fillSchema() {
    schema.name = "ArrowSchema";
    schema.size = ArrowSchema.LAYOUT.byteSize();
    schema.childCount = s -> ArrowSchema.getNChildren(ArrowSchema.at(pointer(s)));
    schema.children = field(ArrowSchema::at, ArrowSchema::getChildren, ArrowSchema::setChildren);
    schema.dictionary =
        field(ArrowSchema::at, ArrowSchema::getDictionary, ArrowSchema::setDictionary);
    schema.release = field(ArrowSchema::at, ArrowSchema::getRelease, ArrowSchema::setRelease);
    schema.callRelease =
        s ->
            ArrowSchema.Release.invoke(
                ArrowSchema.getRelease(ArrowSchema.at(pointer(s))), pointer(s));
    schema.newRelease =
        callback -> address(ArrowSchema.Release.stub(self -> callback.accept(address(self))));
    schema.privateData =
        field(ArrowSchema::at, ArrowSchema::getPrivateData, ArrowSchema::setPrivateData);
    schema.format = s -> address(ArrowSchema.getFormat(ArrowSchema.at(pointer(s))));
    schema.fieldName = s -> address(ArrowSchema.getName(ArrowSchema.at(pointer(s))));
    schema.metadata = s -> address(ArrowSchema.getMetadata(ArrowSchema.at(pointer(s))));
    schema.flags = s -> ArrowSchema.getFlags(ArrowSchema.at(pointer(s)));
  }

  private void fillArray() {
    array.name = "ArrowArray";
    array.size = ArrowArray.LAYOUT.byteSize();
    array.childCount = s -> ArrowArray.getNChildren(ArrowArray.at(pointer(s)));
    array.children = field(ArrowArray::at, ArrowArray::getChildren, ArrowArray::setChildren);
    array.dictionary = field(ArrowArray::at, ArrowArray::getDictionary, ArrowArray::setDictionary);
    array.release = field(ArrowArray::at, ArrowArray::getRelease, ArrowArray::setRelease);
    array.callRelease =
        s ->
            ArrowArray.Release.invoke(ArrowArray.getRelease(ArrowArray.at(pointer(s))), pointer(s));
    array.newRelease =
        callback -> address(ArrowArray.Release.stub(self -> callback.accept(address(self))));
    array.privateData =
        field(ArrowArray::at, ArrowArray::getPrivateData, ArrowArray::setPrivateData);
    array.length = s -> ArrowArray.getLength(ArrowArray.at(pointer(s)));
    array.nullCount = s -> ArrowArray.getNullCount(ArrowArray.at(pointer(s)));
    array.offset = s -> ArrowArray.getOffset(ArrowArray.at(pointer(s)));
    array.bufferCount = s -> ArrowArray.getNBuffers(ArrowArray.at(pointer(s)));
    array.buffers = s -> address(ArrowArray.getBuffers(ArrowArray.at(pointer(s))));
  }

  private void fillStream() {
    stream.size = ArrowDeviceArrayStream.LAYOUT.byteSize();
    stream.getSchema =
        field(
            ArrowDeviceArrayStream::at,
            ArrowDeviceArrayStream::getGetSchema,
            ArrowDeviceArrayStream::setGetSchema);
    stream.callGetSchema =
        (s, out) ->
            ArrowDeviceArrayStream.GetSchema.invoke(
                ArrowDeviceArrayStream.getGetSchema(ArrowDeviceArrayStream.at(pointer(s))),
                pointer(s),
                pointer(out));
    stream.newGetSchema =
        callback ->
            address(
                ArrowDeviceArrayStream.GetSchema.stub(
                    (self, out) -> callback.fill(address(self), address(out))));
    stream.getNext =
        field(
            ArrowDeviceArrayStream::at,
            ArrowDeviceArrayStream::getGetNext,
            ArrowDeviceArrayStream::setGetNext);
    stream.callGetNext =
        (s, out) ->
            ArrowDeviceArrayStream.GetNext.invoke(
                ArrowDeviceArrayStream.getGetNext(ArrowDeviceArrayStream.at(pointer(s))),
                pointer(s),
                pointer(out));
    stream.newGetNext =
        callback ->
            address(
                ArrowDeviceArrayStream.GetNext.stub(
                    (self, out) -> callback.fill(address(self), address(out))));
    stream.getLastError =
        field(
            ArrowDeviceArrayStream::at,
            ArrowDeviceArrayStream::getGetLastError,
            ArrowDeviceArrayStream::setGetLastError);
    stream.callGetLastError =
        s ->
            address(
                ArrowDeviceArrayStream.GetLastError.invoke(
                    ArrowDeviceArrayStream.getGetLastError(ArrowDeviceArrayStream.at(pointer(s))),
                    pointer(s)));
    stream.newGetLastError =
        callback ->
            address(
                ArrowDeviceArrayStream.GetLastError.stub(
                    self -> pointer(callback.of(address(self)))));
    stream.release =
        field(
            ArrowDeviceArrayStream::at,
            ArrowDeviceArrayStream::getRelease,
            ArrowDeviceArrayStream::setRelease);
    stream.callRelease =
        s ->
            ArrowDeviceArrayStream.Release.invoke(
                ArrowDeviceArrayStream.getRelease(ArrowDeviceArrayStream.at(pointer(s))),
                pointer(s));
    stream.newRelease =
        callback ->
            address(ArrowDeviceArrayStream.Release.stub(self -> callback.accept(address(self))));
    stream.privateData =
        field(
            ArrowDeviceArrayStream::at,
            ArrowDeviceArrayStream::getPrivateData,
            ArrowDeviceArrayStream::setPrivateData);
  }

  @Override
  protected long arrayOf(long deviceArray) {
    return address(ArrowDeviceArray.getArray(ArrowDeviceArray.at(pointer(deviceArray))));
  }

  @Override
  protected void clearReserved(long deviceArray) {
    for (int i = 0; i < 3; i++) {
      ArrowDeviceArray.setReserved(ArrowDeviceArray.at(pointer(deviceArray)), i, 0);
    }
  }

  @Override
  protected long allocate(long size) {
    MemorySegment memory;
    try {
      memory = (MemorySegment) CALLOC.invokeExact(1L, size);
    } catch (Throwable e) {
      throw new IllegalStateException(e);
    }
    if (memory.address() == 0) {
      throw new OutOfMemoryError("calloc of " + size + " bytes");
    }
    return memory.address();
  }

  @Override
  protected void free(long address) {
    try {
      FREE.invokeExact(pointer(address));
    } catch (Throwable e) {
      throw new IllegalStateException(e);
    }
  }

  @SuppressWarnings("restricted")
  private static MethodHandle downcall(String name, FunctionDescriptor descriptor) {
    Linker linker = Linker.nativeLinker();
    return linker.downcallHandle(linker.defaultLookup().find(name).orElseThrow(), descriptor);
  }

  private static Field field(
      Function<MemorySegment, MemorySegment> at,
      Function<MemorySegment, MemorySegment> getter,
      BiConsumer<MemorySegment, MemorySegment> setter) {
    return new Field() {
      @Override
      public long of(long struct) {
        return address(getter.apply(at.apply(pointer(struct))));
      }

      @Override
      public void set(long struct, long value) {
        setter.accept(at.apply(pointer(struct)), pointer(value));
      }
    };
  }

  private static MemorySegment pointer(long address) {
    return MemorySegment.ofAddress(address);
  }

  private static long address(MemorySegment pointer) {
    return pointer.address();
  }
}
