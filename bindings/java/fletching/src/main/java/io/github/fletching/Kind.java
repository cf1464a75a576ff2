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
 * array.
 */
enum Kind {
  SCHEMA("schema", Offsets.ARROW_SCHEMA, Callback.SCHEMA_RELEASE),
  ARRAY("array", Offsets.ARROW_ARRAY, Callback.ARRAY_RELEASE),
  DEVICE_ARRAY("device array", Offsets.ARROW_DEVICE_ARRAY, Callback.ARRAY_RELEASE),
  ARRAY_STREAM("stream", Offsets.ARROW_ARRAY_STREAM, Callback.ARRAY_STREAM_RELEASE),
  DEVICE_ARRAY_STREAM(
      "device stream", Offsets.ARROW_DEVICE_ARRAY_STREAM, Callback.DEVICE_ARRAY_STREAM_RELEASE);

  /** No table has as many columns; a count that was never set does. */
  static final int MOST_STRUCTS = 1 << 22;

  final String title;
  final Callback callback; // the release
  final Engine.Callback releases = (struct, b, c, d) -> Exported.releaseFromC(this, struct);
  final int size;
  final long release;
  final long privateData;
  final long childCount;
  final long children;
  final long dictionary;
  final Slot.Pool pool;

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
    pool = new Slot.Pool(this);
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
    long function = struct == 0 ? 0 : C.getAddress(struct + release);
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
