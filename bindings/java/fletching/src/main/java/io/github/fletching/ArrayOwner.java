// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.nio.ByteBuffer;

/** What {@link Array} and {@link DeviceArray} have in common. */
public abstract class ArrayOwner extends Owner {
  ArrayOwner(Kind kind, Slot slot) {
    super(kind, slot);
  }

  /**
   * The array itself as a view, for code that walks through views.
   *
   * @return the array itself as a view, for code that walks through views
   */
  public final ArrayView view() {
    open("read");
    return top();
  }

  /** The same without a check, which its first read does. */
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
   * The number of nulls, -1 when the producer has not counted.
   *
   * @return the number of nulls, -1 when the producer has not counted
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
   * The addresses of the buffers, on the device of the array; 0 for none.
   *
   * @return the addresses of the buffers, on the device of the array
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
   * Compares the array with its schema, both as a foreign producer may have left them: formats, the
   * numbers of buffers and children, dictionaries, length, offset and null_count, NULL pointers,
   * and the lengths of children. It reads the structs and their lists of pointers, never a buffer,
   * so it works for every device and before the event.
   *
   * <p>Text: Arrow C data interface, "Structure definitions"; columnar format, "Buffer listing for
   * each layout".
   *
   * @param schema the schema
   * @throws FletchingException EINVAL with the path of the field and the rule that is broken
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
   * Keeps an object until the release of the struct: what the producer does not know of and the
   * data needs. An AutoCloseable is closed then, on the thread that releases. A child that is moved
   * out does not prolong its life; see {@code share} for that. Release and private_data of the
   * struct change.
   *
   * @param object the object, which may be null
   * @throws IllegalStateException after close; then the object is still the caller's
   */
  public final void attach(Object object) {
    Tree.attach(this, object);
  }

  /**
   * The same with a lambda as the object.
   *
   * @param object the object, which may be null
   */
  public final void attach(AutoCloseable object) {
    attach((Object) object);
  }
}
