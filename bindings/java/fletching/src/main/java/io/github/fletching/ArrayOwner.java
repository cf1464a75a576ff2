// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.nio.ByteBuffer;

/** The base class of {@link Array} and {@link DeviceArray}. */
public abstract class ArrayOwner extends Owner {
  ArrayOwner(Kind kind, Slot slot) {
    super(kind, slot);
  }

  /**
   * A view of the array itself, for code that traverses views.
   *
   * @return a view of the array
   */
  public final ArrayView view() {
    open("read");
    return top();
  }

  /** The view without a check; its first read checks. */
  private ArrayView top() {
    return new ArrayView(this, null, 0);
  }

  /**
   * The number of values.
   *
   * @return the number of values
   */
  public final long length() {
    return top().length();
  }

  /**
   * The number of nulls; -1 if the producer has not counted them.
   *
   * @return the number of nulls, or -1
   */
  public final long nullCount() {
    return top().nullCount();
  }

  /**
   * The index of the first value in every buffer.
   *
   * @return the index of the first value in every buffer
   */
  public final long offset() {
    return top().offset();
  }

  /**
   * The addresses of the buffers on the array's device; 0 for a missing buffer.
   *
   * @return the addresses of the buffers
   */
  public final long[] buffers() {
    return top().buffers();
  }

  /**
   * See {@link ArrayView#hostBuffer}.
   *
   * @param index the index, from 0
   * @param offset the first byte
   * @param size the number of bytes
   * @return the bytes
   */
  public final ByteBuffer hostBuffer(int index, long offset, int size) {
    return top().hostBuffer(index, offset, size);
  }

  /**
   * See {@link View#childCount}.
   *
   * @return the number of children
   */
  public final int childCount() {
    return top().childCount();
  }

  /**
   * See {@link ArrayView#child}.
   *
   * @param index the index, from 0
   * @return the child
   */
  public final ArrayView child(int index) {
    return top().child(index);
  }

  /**
   * See {@link ArrayView#dictionary}.
   *
   * @return the dictionary
   */
  public final ArrayView dictionary() {
    return top().dictionary();
  }

  /**
   * Checks the array against its schema; either may come from a faulty producer. Compares formats,
   * the numbers of buffers and children, dictionaries, length, offset, null_count, NULL pointers,
   * and the lengths of children. Reads the structs and their pointer lists, never a buffer, so it
   * works on every device and before the event has completed.
   *
   * <p>See "Structure definitions" in the Arrow C data interface and "Buffer listing for each
   * layout" in the Arrow columnar format.
   *
   * @param schema the schema to check against
   * @throws FletchingException EINVAL with the path of the field and the broken rule
   */
  public final void check(Schema schema) {
    long array = enter("check");
    try {
      schema.check(array);
    } finally {
      leave();
    }
  }

  /**
   * Keeps an object alive until the struct is released: a resource that the data needs and the
   * producer does not manage. If the object is AutoCloseable, it is closed then, on the releasing
   * thread. A child that is moved out does not extend the object's life; see {@code share} for
   * that. Replaces release and private_data of the struct.
   *
   * @param object the object, which may be null
   * @throws IllegalStateException after close; the caller then still owns the object
   */
  public final void attach(Object object) {
    Tree.attach(this, object);
  }

  /**
   * Keeps an object alive until the struct is released; overload for a lambda.
   *
   * @param object the object, which may be null
   */
  public final void attach(AutoCloseable object) {
    attach((Object) object);
  }
}
