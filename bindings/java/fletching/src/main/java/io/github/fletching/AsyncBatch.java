// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.util.Objects;
import java.util.concurrent.Callable;

/**
 * A batch of an async stream: an array, or what makes it, and metadata. Batches to send are made
 * with {@link #of} and {@link #made}, {@link AsyncDeviceStream#batches} receives them.
 */
public final class AsyncBatch {
  final DeviceArray array; // null when it is made later
  final Callable<DeviceArray> maker;
  final Metadata metadata;

  private AsyncBatch(DeviceArray array, Callable<DeviceArray> maker, Metadata metadata) {
    this.array = array;
    this.maker = maker;
    this.metadata = metadata;
  }

  /**
   * An array, which is moved in when the batch is sent.
   *
   * @param array the array
   * @return the batch
   */
  public static AsyncBatch of(DeviceArray array) {
    return new AsyncBatch(Objects.requireNonNull(array, "array"), null, Metadata.EMPTY);
  }

  /**
   * An array that is made when the consumer extracts it, on the consumer's thread, which should not
   * be blocked. It is not made for a consumer that drops the task. What the maker throws, and an
   * array that the stream may not have, is what extract_data returns, and ends the stream.
   *
   * @param maker what makes the array
   * @return the batch
   */
  public static AsyncBatch made(Callable<DeviceArray> maker) {
    return new AsyncBatch(null, Objects.requireNonNull(maker, "maker"), Metadata.EMPTY);
  }

  /**
   * The array, which the receiver closes; null when it is made later.
   *
   * @return the array, which the receiver closes
   */
  public DeviceArray array() {
    return array;
  }

  /**
   * The metadata.
   *
   * @return the metadata
   */
  public Metadata metadata() {
    return metadata;
  }

  /**
   * The same batch with metadata, which is passed with the task.
   *
   * @param more the metadata
   * @return the batch with the metadata
   */
  public AsyncBatch with(Metadata more) {
    return new AsyncBatch(array, maker, more);
  }
}
