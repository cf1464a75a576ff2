// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.util.Iterator;
import java.util.Objects;
import java.util.function.LongConsumer;

/**
 * Owner of an ArrowArrayStream with batches in CPU memory. See {@link BatchStream}.
 *
 * <p>See the Arrow C stream interface.
 */
public final class ArrayStream extends BatchStream<Array> {
  private ArrayStream(Slot slot) {
    super(StreamKind.HOST, slot, Array::new);
  }

  /**
   * Moves the struct at an address into an owner; see {@link Array#wrap} for requirements and
   * errors.
   *
   * @param address the address of a struct
   * @return the owner
   */
  public static ArrayStream wrap(long address) {
    return new ArrayStream(imported(Kind.ARRAY_STREAM, address));
  }

  /**
   * Owns the struct that a C function fills; see {@link Array#filledBy}.
   *
   * @param function the function, which is called once
   * @return the owner
   */
  public static ArrayStream filledBy(LongConsumer function) {
    return new ArrayStream(filled(Kind.ARRAY_STREAM, function));
  }

  /**
   * Creates a stream of the given batches; see {@link DeviceArrayStream#of}.
   *
   * @param schema the type of the batches
   * @param batches the batches to export
   * @return the stream
   */
  public static ArrayStream of(Schema schema, Iterator<Array> batches) {
    Objects.requireNonNull(batches, "batches");
    Slot slot = Slot.take(Kind.ARRAY_STREAM);
    StreamKind.HOST.export(
        slot.address, StreamProducer.of(Kind.ARRAY, schema, batches, batch -> {}));
    return new ArrayStream(slot);
  }
}
