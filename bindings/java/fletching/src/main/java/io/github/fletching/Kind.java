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
 * The structs with a release callback: where their fields are. A device array begins with its
 * array. A tensor stays where its producer has it: its address is moved, and the functions below
 * take the place of the address for the struct.
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

  /** No table has as many columns; a count that was never set does. */
  static final int MOST_STRUCTS = 1 << 22;

  final String title;
  final Callback callback; // the release
  final Engine.Callback releases = (struct, b, c, d) -> Exported.releaseFromC(this, struct);
  final int size;
  final long release;
  final long privateData; // of a tensor in the struct, not in the place of its address
  final long childCount;
  final long children;
  final long dictionary;
  final Slot.Pool pool;
  final int tensorSize; // of the struct around a DLTensor; -1 for other structs
  final long tensor; // the offset of the DLTensor in it

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

  /** Whether a slot has the address of a struct, and not the struct. */
  boolean isTensor() {
    return tensorSize >= 0;
  }

  /** The kind of what is below. */
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

  /** Moves a struct of this kind, or the array in a device array. */
  void move(long from, long to) {
    C.copy(from, to, size);
    markReleased(from);
  }

  /**
   * Releases a struct, unless it is NULL or released. It is marked as released also if the callback
   * does not.
   */
  void releaseOnce(long struct) {
    releaseOnce(struct, null);
  }

  /** The same; {@code ended} as for {@link Exported#releasedHere}. */
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

  // --- What is below

  /** How many children can be read: none for a list that is NULL, and for an absurd count. */
  int childCount(long struct) {
    long count = C.getLong(struct + childCount);
    return count < 0 || count > MOST_STRUCTS || C.getAddress(struct + children) == 0
        ? 0
        : (int) count;
  }

  /** The address of a child, which may be NULL. */
  long child(long struct, int index) {
    return C.getAddress(C.getAddress(struct + children) + (long) index * POINTER);
  }

  long dictionary(long struct) {
    return C.getAddress(struct + dictionary);
  }
}
