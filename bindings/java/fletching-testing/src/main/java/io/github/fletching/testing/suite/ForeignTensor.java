// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.jna.Callback;
import com.sun.jna.CallbackReference;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.DataType;
import io.github.fletching.Tensor;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.Offsets;
import io.github.fletching.abi.StructOffsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** A DLPack 1.3 tensor of a foreign producer. Counts the calls of its deleter. */
final class ForeignTensor {
  private static final LayoutClass TARGET = LayoutClass.of(8, 8);
  private static final Map<Long, ForeignTensor> LIVE = new ConcurrentHashMap<>();
  private static final AtomicLong LAST = new AtomicLong();
  private static final Deleter DELETER = ForeignTensor::delete; // kept reachable

  private final boolean isLegacy;
  private final StructOffsets struct;
  private final Memory managed;
  private final Memory shape;
  private Memory strides; // null for a NULL pointer
  private final AtomicInteger deletions = new AtomicInteger();
  private final long handle = LAST.incrementAndGet();

  interface Deleter extends Callback {
    void run(Pointer tensor);
  }

  private static void delete(Pointer tensor) {
    for (ForeignTensor each : LIVE.values()) {
      if (Pointer.nativeValue(each.managed) == Pointer.nativeValue(tensor)) {
        each.deletions.incrementAndGet();
      }
    }
  }

  private ForeignTensor(boolean isLegacy, DataType type, long data, long... sizes) {
    this.isLegacy = isLegacy;
    struct = isLegacy ? Offsets.DL_MANAGED_TENSOR : Offsets.DL_MANAGED_TENSOR_VERSIONED;
    managed = new Memory(struct.size(TARGET));
    managed.clear();
    shape = longs(sizes);
    Pointer deleter = CallbackReference.getFunctionPointer(DELETER);
    managed.setPointer(struct.offset(TARGET, "deleter"), deleter);
    managed.setLong(struct.offset(TARGET, "manager_ctx"), handle);
    if (!isLegacy) {
      version(1, 3);
    }
    on(DeviceType.CPU, 0).ndim(sizes.length).data(data).byteOffset(0).shape(shape);
    long dtype = field("dtype");
    managed.setByte(dtype, (byte) type.code().value());
    managed.setByte(dtype + 1, (byte) type.bits());
    managed.setShort(dtype + 2, (short) type.lanes());
    LIVE.put(handle, this);
  }

  static ForeignTensor of(DataType type, long data, long... sizes) {
    return new ForeignTensor(false, type, data, sizes);
  }

  static ForeignTensor legacy(DataType type, long data, long... sizes) {
    return new ForeignTensor(true, type, data, sizes);
  }

  private static Memory longs(long... values) {
    Memory memory = new Memory(8L * Math.max(values.length, 1));
    memory.write(0, values, 0, values.length);
    return memory;
  }

  private long field(String name) {
    return (long) struct.offset(TARGET, "dl_tensor") + Offsets.DL_TENSOR.offset(TARGET, name);
  }

  ForeignTensor strides(long... steps) {
    strides = longs(steps);
    managed.setPointer(field("strides"), strides);
    return this;
  }

  ForeignTensor shape(Pointer sizes) {
    managed.setPointer(field("shape"), sizes);
    return this;
  }

  ForeignTensor ndim(int count) {
    managed.setInt(field("ndim"), count);
    return this;
  }

  ForeignTensor data(long address) {
    managed.setLong(field("data"), address);
    return this;
  }

  ForeignTensor byteOffset(long bytes) {
    managed.setLong(field("byte_offset"), bytes);
    return this;
  }

  ForeignTensor on(DeviceType type, int id) {
    managed.setInt(field("device"), type.value());
    managed.setInt(field("device") + 4, id);
    return this;
  }

  ForeignTensor flags(long bits) {
    managed.setLong(struct.offset(TARGET, "flags"), bits);
    return this;
  }

  ForeignTensor version(int major, int minor) {
    managed.setInt(struct.offset(TARGET, "version"), major);
    managed.setInt(struct.offset(TARGET, "version") + 4, minor);
    return this;
  }

  ForeignTensor withoutDeleter() {
    managed.setPointer(struct.offset(TARGET, "deleter"), null);
    return this;
  }

  long address() {
    return Pointer.nativeValue(managed);
  }

  /** Passes the tensor to an owner. */
  Tensor take() {
    return isLegacy ? Tensor.wrapLegacy(address()) : Tensor.wrap(address());
  }

  void assertDeletedOnce() {
    assertEquals(1, deletions());
  }

  int deletions() {
    return deletions.get();
  }
}
