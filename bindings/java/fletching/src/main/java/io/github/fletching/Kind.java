// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.Offsets;
import io.github.fletching.abi.StructOffsets;
import io.github.fletching.abi.engine.Engine;
import java.util.Deque;

/**
 * The structs with a release callback, and their field offsets. A device array begins with its
 * array. A tensor stays at its producer's address: a slot stores the address, which the methods
 * below treat as the struct.
 */
enum Kind {
  SCHEMA("schema", Offsets.ARROW_SCHEMA, Callback.SCHEMA_RELEASE),
  ARRAY("array", Offsets.ARROW_ARRAY, Callback.ARRAY_RELEASE),
  DEVICE_ARRAY("device array", Offsets.ARROW_DEVICE_ARRAY, Callback.ARRAY_RELEASE),
  ARRAY_STREAM("stream", Offsets.ARROW_ARRAY_STREAM, Callback.ARRAY_STREAM_RELEASE),
  DEVICE_ARRAY_STREAM(
      "device stream", Offsets.ARROW_DEVICE_ARRAY_STREAM, Callback.DEVICE_ARRAY_STREAM_RELEASE),
  TENSOR(
      "tensor",
      Offsets.DL_MANAGED_TENSOR_VERSIONED,
      Callback.MANAGED_TENSOR_VERSIONED_DELETER,
      Fields.MANAGED_TENSOR_VERSIONED_DL_TENSOR,
      Fields.MANAGED_TENSOR_VERSIONED_MANAGER_CTX),
  LEGACY_TENSOR(
      "legacy tensor",
      Offsets.DL_MANAGED_TENSOR,
      Callback.MANAGED_TENSOR_DELETER,
      Fields.MANAGED_TENSOR_DL_TENSOR,
      Fields.MANAGED_TENSOR_MANAGER_CTX);

  /** Larger than the column count of any table, but smaller than an uninitialized count. */
  static final int MOST_STRUCTS = 1 << 22;

  final String title;
  final Callback callback; // the release callback
  final Engine.Callback releases = (struct, b, c, d) -> Exported.releaseFromC(this, struct);
  final int size;
  final long release;
  final long privateData; // for a tensor in the managed struct, not in the slot
  final long childCount;
  final long children;
  final long dictionary;
  final Slot.Pool pool;
  final int tensorSize; // size of the struct around a DLTensor; -1 for other structs
  final long tensor; // offset of the DLTensor in that struct

  private final byte[] zeros;

  Kind(String title, StructOffsets own, Callback callback) {
    LayoutClass target = C.target();
    StructOffsets base = callback == Callback.ARRAY_RELEASE ? Offsets.ARROW_ARRAY : own;
    boolean nested = base.fields().contains("children");
    this.title = title;
    this.callback = callback;
    size = own.size(target);
    zeros = new byte[size];
    release = base.offset(target, "release");
    privateData = base.offset(target, "private_data");
    childCount = nested ? base.offset(target, "n_children") : -1;
    children = nested ? base.offset(target, "children") : -1;
    dictionary = nested ? base.offset(target, "dictionary") : -1;
    tensorSize = -1;
    tensor = -1;
    pool = new Slot.Pool(this);
  }

  Kind(String title, StructOffsets managed, Callback callback, long tensor, long privateData) {
    this.title = title;
    this.callback = callback;
    this.tensor = tensor;
    this.privateData = privateData;
    tensorSize = managed.size(C.target());
    size = POINTER;
    zeros = new byte[size];
    release = 0;
    childCount = -1;
    children = -1;
    dictionary = -1;
    pool = new Slot.Pool(this);
  }

  /** Whether a slot contains the address of a struct instead of the struct. */
  boolean isTensor() {
    return tensorSize >= 0;
  }

  /** The kind of the structs below. */
  Kind base() {
    return this == DEVICE_ARRAY ? ARRAY : this;
  }

  boolean isReleased(long struct) {
    return C.getAddress(struct + release) == 0;
  }

  void markReleased(long struct) {
    C.putAddress(struct + release, 0);
  }

  void clear(long struct) {
    C.write(struct, zeros);
  }

  /** Moves a struct of this kind, or the array of a device array. */
  void move(long from, long to) {
    C.copy(from, to, size);
    markReleased(from);
  }

  /**
   * Releases a struct, unless it is NULL or released. Marks it as released even if the callback
   * does not.
   */
  void releaseOnce(long struct) {
    releaseOnce(struct, null);
  }

  /** Releases a struct; {@code ended} as for {@link Exported#releasedHere}. */
  void releaseOnce(long struct, Deque<Object> ended) {
    long first = struct == 0 ? 0 : C.getAddress(struct + release);
    if (first == 0) {
      return;
    }
    long target = isTensor() ? first : struct;
    long function = isTensor() ? callback.in(first) : first;
    if (function != 0 && !Exported.releasedHere(this, function, target, ended)) {
      C.run(function, target);
    }
    markReleased(struct);
  }

  // --- Structs below

  /** The number of readable children: 0 for a NULL list and for a count out of range. */
  int childCount(long struct) {
    long count = C.getLong(struct + childCount);
    return count < 0 || count > MOST_STRUCTS || C.getAddress(struct + children) == 0
        ? 0
        : (int) count;
  }

  /** Returns the address of a child, which may be NULL. */
  long child(long struct, int index) {
    return C.getAddress(C.getAddress(struct + children) + (long) index * POINTER);
  }

  long dictionary(long struct) {
    return C.getAddress(struct + dictionary);
  }
}
