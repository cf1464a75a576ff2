// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import com.sun.jna.Native;
import com.sun.jna.Pointer;
import io.github.fletching.jna.abi.ArrowArray;
import io.github.fletching.jna.abi.ArrowDeviceArray;
import io.github.fletching.jna.abi.ArrowDeviceArrayStream;
import io.github.fletching.jna.abi.ArrowSchema;
import java.util.function.BiConsumer;
import java.util.function.Function;

/** The structs through fletching-jna. */
final class JnaStructs extends Structs {
  JnaStructs() {
    super("java-jna", ArrowDeviceArray.SIZE);
    fillSchema();
    fillArray();
    fillStream();
  }

  private void fillSchema() {
    schema.name = "ArrowSchema";
    schema.size = ArrowSchema.SIZE;
    schema.childCount = s -> ArrowSchema.getNChildren(pointer(s));
    schema.children = field(ArrowSchema::getChildren, ArrowSchema::setChildren);
    schema.dictionary = field(ArrowSchema::getDictionary, ArrowSchema::setDictionary);
    schema.release = field(ArrowSchema::getRelease, ArrowSchema::setRelease);
    schema.callRelease =
        s -> ArrowSchema.Release.invoke(ArrowSchema.getRelease(pointer(s)), pointer(s));
    schema.newRelease =
        callback -> address(ArrowSchema.Release.stub(self -> callback.accept(address(self))));
    schema.privateData = field(ArrowSchema::getPrivateData, ArrowSchema::setPrivateData);
    schema.format = s -> address(ArrowSchema.getFormat(pointer(s)));
    schema.fieldName = s -> address(ArrowSchema.getName(pointer(s)));
    schema.metadata = s -> address(ArrowSchema.getMetadata(pointer(s)));
    schema.flags = s -> ArrowSchema.getFlags(pointer(s));
  }

  private void fillArray() {
    array.name = "ArrowArray";
    array.size = ArrowArray.SIZE;
    array.childCount = s -> ArrowArray.getNChildren(pointer(s));
    array.children = field(ArrowArray::getChildren, ArrowArray::setChildren);
    array.dictionary = field(ArrowArray::getDictionary, ArrowArray::setDictionary);
    array.release = field(ArrowArray::getRelease, ArrowArray::setRelease);
    array.callRelease =
        s -> ArrowArray.Release.invoke(ArrowArray.getRelease(pointer(s)), pointer(s));
    array.newRelease =
        callback -> address(ArrowArray.Release.stub(self -> callback.accept(address(self))));
    array.privateData = field(ArrowArray::getPrivateData, ArrowArray::setPrivateData);
    array.length = s -> ArrowArray.getLength(pointer(s));
    array.nullCount = s -> ArrowArray.getNullCount(pointer(s));
    array.offset = s -> ArrowArray.getOffset(pointer(s));
    array.bufferCount = s -> ArrowArray.getNBuffers(pointer(s));
    array.buffers = s -> address(ArrowArray.getBuffers(pointer(s)));
  }

  private void fillStream() {
    stream.size = ArrowDeviceArrayStream.SIZE;
    stream.getSchema =
        field(ArrowDeviceArrayStream::getGetSchema, ArrowDeviceArrayStream::setGetSchema);
    stream.callGetSchema =
        (s, out) ->
            ArrowDeviceArrayStream.GetSchema.invoke(
                ArrowDeviceArrayStream.getGetSchema(pointer(s)), pointer(s), pointer(out));
    stream.newGetSchema =
        callback ->
            address(
                ArrowDeviceArrayStream.GetSchema.stub(
                    (self, out) -> callback.fill(address(self), address(out))));
    stream.getNext = field(ArrowDeviceArrayStream::getGetNext, ArrowDeviceArrayStream::setGetNext);
    stream.callGetNext =
        (s, out) ->
            ArrowDeviceArrayStream.GetNext.invoke(
                ArrowDeviceArrayStream.getGetNext(pointer(s)), pointer(s), pointer(out));
    stream.newGetNext =
        callback ->
            address(
                ArrowDeviceArrayStream.GetNext.stub(
                    (self, out) -> callback.fill(address(self), address(out))));
    stream.getLastError =
        field(ArrowDeviceArrayStream::getGetLastError, ArrowDeviceArrayStream::setGetLastError);
    stream.callGetLastError =
        s ->
            address(
                ArrowDeviceArrayStream.GetLastError.invoke(
                    ArrowDeviceArrayStream.getGetLastError(pointer(s)), pointer(s)));
    stream.newGetLastError =
        callback ->
            address(
                ArrowDeviceArrayStream.GetLastError.stub(
                    self -> pointer(callback.of(address(self)))));
    stream.release = field(ArrowDeviceArrayStream::getRelease, ArrowDeviceArrayStream::setRelease);
    stream.callRelease =
        s ->
            ArrowDeviceArrayStream.Release.invoke(
                ArrowDeviceArrayStream.getRelease(pointer(s)), pointer(s));
    stream.newRelease =
        callback ->
            address(ArrowDeviceArrayStream.Release.stub(self -> callback.accept(address(self))));
    stream.privateData =
        field(ArrowDeviceArrayStream::getPrivateData, ArrowDeviceArrayStream::setPrivateData);
  }

  @Override
  protected long arrayOf(long deviceArray) {
    return address(ArrowDeviceArray.getArray(pointer(deviceArray)));
  }

  @Override
  protected void clearReserved(long deviceArray) {
    for (int i = 0; i < 3; i++) {
      ArrowDeviceArray.setReserved(pointer(deviceArray), i, 0);
    }
  }

  @Override
  protected long allocate(long size) {
    long address = Native.malloc(size);
    if (address == 0) {
      throw new OutOfMemoryError("malloc of " + size + " bytes");
    }
    new Pointer(address).clear(size);
    return address;
  }

  @Override
  protected void free(long address) {
    Native.free(address);
  }

  private static Field field(
      Function<Pointer, Pointer> getter, BiConsumer<Pointer, Pointer> setter) {
    return new Field() {
      @Override
      public long of(long struct) {
        return address(getter.apply(pointer(struct)));
      }

      @Override
      public void set(long struct, long value) {
        setter.accept(pointer(struct), pointer(value));
      }
    };
  }

  private static Pointer pointer(long address) {
    return address == 0 ? null : new Pointer(address);
  }

  private static long address(Pointer pointer) {
    return Pointer.nativeValue(pointer);
  }
}
