// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import java.util.Iterator;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.LongConsumer;

/**
 * Owner of an ArrowDeviceArrayStream. See {@link BatchStream}.
 *
 * <p>Reading also throws EINVAL, with the rule id, for a batch in memory that the stream's device
 * type cannot access. Warnings: {@code device-stream.one-device-type} for a batch of another device
 * type, in memory accessible to every device that can access the stream's memory; {@code
 * device-array.reserved-zero}.
 *
 * <p>See the Arrow C device stream interface.
 */
public final class DeviceArrayStream extends BatchStream<DeviceArray> {
  private final DeviceType deviceType;
  private Consumer<Warning> onWarning = warning -> {};

  private DeviceArrayStream(Slot slot) {
    super(StreamKind.DEVICE, slot, DeviceArray::new);
    deviceType = DeviceType.of(C.getInt(slot.address + Fields.DEVICE_ARRAY_STREAM_DEVICE_TYPE));
  }

  /**
   * Moves the struct at an address into an owner; see {@link Array#wrap} for requirements and
   * errors.
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
   * Creates a stream from an iterator's batches. The schema and each batch are moved. The iterator
   * runs on the thread that requests a batch. If it is AutoCloseable, such as another stream, it is
   * closed with the stream.
   *
   * <p>If the iterator throws, get_next returns the errno value of a {@link FletchingException},
   * ENOMEM for an OutOfMemoryError, EINVAL for an IllegalArgumentException, ENOSYS for an
   * UnsupportedOperationException, and otherwise EIO; get_last_error returns the message. Later
   * calls of get_next return the same error. get_next also fails for a batch in memory that devices
   * of the type cannot access, a batch that is null or closed, and a batch whose numbers of buffers
   * and children or whose dictionaries differ from the schema at any level. The message contains
   * the batch number, from 0, and the field. Buffer contents are not compared.
   *
   * @param schema the type of the batches
   * @param deviceType the device type of the stream
   * @param batches the batches to export
   * @return the stream
   * @throws FletchingException EINVAL if the device type is 0, and for a schema that is malformed
   *     as for {@link Shared#column}; the schema is then not moved
   * @throws IllegalStateException if the schema is closed
   */
  public static DeviceArrayStream of(
      Schema schema, DeviceType deviceType, Iterator<DeviceArray> batches) {
    if (deviceType.value() == 0) {
      throw FletchingException.brokenRule(
          "device-stream.device-type-set",
          "DeviceArrayStream.of: device_type: 0: expected the device type of the batches");
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
   * The type of the devices that can access the batches.
   *
   * @return the device type
   */
  public DeviceType deviceType() {
    return deviceType;
  }

  /**
   * Sets a consumer that is called for each warning, on the reading thread, before the batch is
   * returned. If it throws, the batch is rejected. By default warnings are ignored.
   *
   * @param consumer the consumer to call
   * @return this stream
   */
  public DeviceArrayStream onWarning(Consumer<Warning> consumer) {
    onWarning = Objects.requireNonNull(consumer, "consumer");
    return this;
  }

  /**
   * Turns warnings into EINVAL errors.
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
