// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import java.util.Iterator;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.LongConsumer;

/**
 * Owns an ArrowDeviceArrayStream. See {@link BatchStream}.
 *
 * <p>EINVAL too, with the id of the rule, for a batch on a device from which the stream's device
 * type cannot be served. Warnings: {@code device-stream.one-device-type} for a batch of another
 * device type whose memory every device can access that can access the stream's; {@code
 * device-array.reserved-zero}.
 *
 * <p>Text: Arrow C device stream interface.
 */
public final class DeviceArrayStream extends BatchStream<DeviceArray> {
  private final DeviceType deviceType;
  private Consumer<Warning> onWarning = warning -> {};

  private DeviceArrayStream(Slot slot) {
    super(StreamKind.DEVICE, slot, DeviceArray::new);
    deviceType = DeviceType.of(C.getInt(slot.address + Fields.DEVICE_ARRAY_STREAM_DEVICE_TYPE));
  }

  /**
   * Moves the struct at an address in; see {@link Array#wrap} for promises and errors.
   *
   * @param address the address of a struct
   * @return the owner
   */
  public static DeviceArrayStream wrap(long address) {
    return new DeviceArrayStream(imported(Kind.DEVICE_ARRAY_STREAM, address));
  }

  /**
   * Owns the struct that a C function fills; see {@link Array#filledBy}.
   *
   * @param function the function, which is called once
   * @return the owner
   */
  public static DeviceArrayStream filledBy(LongConsumer function) {
    return new DeviceArrayStream(filled(Kind.DEVICE_ARRAY_STREAM, function));
  }

  /**
   * A stream of the schema, on devices of the type, of the batches of an iterator. The schema is
   * moved in, and so is each batch. The iterator is called on the thread that asks for a batch, and
   * closed with the stream when it is AutoCloseable: another stream is such an iterator.
   *
   * <p>What the iterator throws is what get_next returns, with the errno value of a {@link
   * FletchingException}, ENOMEM for an OutOfMemoryError, EINVAL for an IllegalArgumentException,
   * ENOSYS for an UnsupportedOperationException, else EIO, and what get_last_error says. After it
   * get_next returns it again. So is a batch on a device whose memory the devices of the type
   * cannot access, a batch that is null or closed, and one whose numbers of buffers and children or
   * whose dictionaries are not those of the schema, at any level: the message has the batch's
   * number, from 0, and the field. The buffers' contents are not compared.
   *
   * @param schema the schema
   * @param deviceType the type of the device
   * @param batches the batches
   * @return the stream
   * @throws FletchingException EINVAL when the device type is 0, and for a schema that is malformed
   *     as for {@link Shared#column}; then nothing was moved
   * @throws IllegalStateException when the schema is closed
   */
  public static DeviceArrayStream of(
      Schema schema, DeviceType deviceType, Iterator<DeviceArray> batches) {
    if (deviceType.value() == 0) {
      throw FletchingException.brokenRule(
          "device-stream.device-type-set",
          "stream: device_type: 0: expected the device type of the batches");
    }
    Objects.requireNonNull(batches, "batches");
    Slot slot = Slot.take(Kind.DEVICE_ARRAY_STREAM);
    Consumer<DeviceArray> check = batch -> checkBatch(batch, deviceType, warning -> {});
    C.putInt(slot.address + Fields.DEVICE_ARRAY_STREAM_DEVICE_TYPE, deviceType.value());
    StreamKind.DEVICE.export(
        slot.address, StreamProducer.of(Kind.DEVICE_ARRAY, schema, batches, check));
    return new DeviceArrayStream(slot);
  }

  /**
   * The type of the device that can access the batches.
   *
   * @return the type of the device that can access the batches
   */
  public DeviceType deviceType() {
    return deviceType;
  }

  /**
   * Calls the consumer for each warning, on the thread that reads, before the batch is handed on.
   * One that throws refuses the batch. By default warnings are dropped.
   *
   * @param consumer the consumer to call
   * @return this stream
   */
  public DeviceArrayStream onWarning(Consumer<Warning> consumer) {
    onWarning = Objects.requireNonNull(consumer, "consumer");
    return this;
  }

  /**
   * Makes an error of what would be a warning, EINVAL.
   *
   * @return this stream
   */
  public DeviceArrayStream strict() {
    return onWarning(
        warning -> {
          throw FletchingException.brokenRule(warning.rule(), warning.message());
        });
  }

  @Override
  void check(DeviceArray batch) {
    checkBatch(batch, deviceType, onWarning);
  }

  private static void checkBatch(
      DeviceArray batch, DeviceType promised, Consumer<Warning> onWarning) {
    DeviceType found = batch.deviceType();
    if (!found.equals(promised)) {
      String message =
          "batch: device_type differs from the stream's: expected " + promised + ", got " + found;
      if (promised.accessibleFrom().isEmpty()
          || !found.accessibleFrom().containsAll(promised.accessibleFrom())) {
        throw FletchingException.brokenRule(
            "device-stream-result.accessible",
            message + ", memory that the stream's devices may not access");
      }
      onWarning.accept(new Warning("device-stream.one-device-type", message));
    }
    warnOfReserved(batch, onWarning);
  }

  static void warnOfReserved(DeviceArray batch, Consumer<Warning> onWarning) {
    if (!batch.hasZeroReserved()) {
      onWarning.accept(
          new Warning(
              "device-array.reserved-zero",
              "ArrowDeviceArray.reserved: not zero: expected zeros; hint: fix the producer"));
    }
  }
}
