// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.Offsets;
import io.github.fletching.abi.StructOffsets;
import java.util.Deque;

/**
 * The structs with a release callback: where their fields are. A device array begins with its
 * array.
 */
enum Kind {
  SCHEMA("schema", Offsets.ARROW_SCHEMA, Offsets.ARROW_SCHEMA, true),
  ARRAY("array", Offsets.ARROW_ARRAY, Offsets.ARROW_ARRAY, true),
  DEVICE_ARRAY("device array", Offsets.ARROW_DEVICE_ARRAY, Offsets.ARROW_ARRAY, true),
  ARRAY_STREAM("stream", Offsets.ARROW_ARRAY_STREAM, Offsets.ARROW_ARRAY_STREAM, false),
  DEVICE_ARRAY_STREAM(
      "device stream", Offsets.ARROW_DEVICE_ARRAY_STREAM, Offsets.ARROW_DEVICE_ARRAY_STREAM, false);

  /** No table has as many columns; a count that was never set does. */
  static final int MOST_STRUCTS = 1 << 22;

  final String title;
  final int size;
  final long release;
  final long privateData;
  final long childCount;
  final long children;
  final long dictionary;
  final Slot.Pool pool;

  private final StructOffsets offsets;
  private final byte[] zeros;
  private volatile long stub; // 0 until a struct of ours needs it

  Kind(String title, StructOffsets own, StructOffsets base, boolean nested) {
    LayoutClass target = C.target();
    this.title = title;
    offsets = own;
    size = own.size(target);
    zeros = new byte[size];
    release = base.offset(target, "release");
    privateData = base.offset(target, "private_data");
    childCount = nested ? base.offset(target, "n_children") : -1;
    children = nested ? base.offset(target, "children") : -1;
    dictionary = nested ? base.offset(target, "dictionary") : -1;
    pool = new Slot.Pool(this);
  }

  /** The kind of what is below. */
  Kind base() {
    return this == DEVICE_ARRAY ? ARRAY : this;
  }

  /** The name in C. */
  String cName() {
    return offsets.name();
  }

  /** The release callback of our own structs, one for the process. */
  long stub() {
    if (stub == 0) {
      synchronized (this) {
        stub = stub != 0 ? stub : Exported.newStub(this);
      }
    }
    return stub;
  }

  boolean isStub(long function) {
    return function == stub;
  }

  long offset(String field) {
    return offsets.offset(C.target(), field);
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

  /** Releases a struct, unless it is. It is marked as released also if the callback does not. */
  void releaseOnce(long struct) {
    releaseOnce(struct, null);
  }

  /** The same; what ends with a struct of ours is pushed, unless it is to end here: for null. */
  void releaseOnce(long struct, Deque<Object> ended) {
    long function = C.getAddress(struct + release);
    if (function == 0) {
      return;
    }
    if (!Exported.releasedHere(this, function, struct, ended)) {
      C.run(function, struct);
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
