// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** What {@link Array} and {@link DeviceArray} have in common. */
public abstract class ArrayOwner extends Owner {
  ArrayOwner(Kind kind, Slot slot) {
    super(kind, slot);
  }

  /** The array itself as a view, for code that walks through views. */
  public final ArrayView view() {
    return new ArrayView(this, null, open("read"));
  }

  /** The number of values. */
  public final long length() {
    return view().length();
  }

  /** The number of nulls, -1 when the producer has not counted. */
  public final long nullCount() {
    return view().nullCount();
  }

  /** The index of the first value in every buffer. */
  public final long offset() {
    return view().offset();
  }

  /** The addresses of the buffers, on the device of the array; 0 for none. */
  public final long[] buffers() {
    return view().buffers();
  }

  /** See {@link View#childCount}. */
  public final int childCount() {
    return view().childCount();
  }

  /** See {@link ArrayView#child}. */
  public final ArrayView child(int index) {
    return view().child(index);
  }

  /** See {@link ArrayView#dictionary}. */
  public final ArrayView dictionary() {
    return view().dictionary();
  }

  /**
   * Keeps an object until the release of the struct: what the producer does not know of and the
   * data needs. An AutoCloseable is closed then, on the thread that releases. A child that is moved
   * out does not prolong its life; see {@code share} for that. Release and private_data of the
   * struct change.
   *
   * @throws IllegalStateException after close; then the object is still the caller's
   */
  public final void attach(Object object) {
    Tree.attach(this, object);
  }

  /** The same with a lambda as the object. */
  public final void attach(AutoCloseable object) {
    attach((Object) object);
  }
}
