// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.util.Objects;
import java.util.concurrent.Callable;

/**
 * A batch of an async stream: an array, or a function that creates it, and metadata. Create batches
 * to send with {@link #of} and {@link #made}; {@link AsyncDeviceStream#batches} receives them.
 */
public final class AsyncBatch {
  final DeviceArray array; // null if the maker creates it later
  final Callable<DeviceArray> maker;
  final Metadata metadata;

  private AsyncBatch(DeviceArray array, Callable<DeviceArray> maker, Metadata metadata) {
    this.array = array;
    this.maker = maker;
    this.metadata = metadata;
  }

  /**
   * Creates a batch from an array, which is moved when the batch is sent.
   *
   * @param array the data of the batch
   * @return the batch
   */
  public static AsyncBatch of(DeviceArray array) {
    return new AsyncBatch(Objects.requireNonNull(array, "array"), null, Metadata.EMPTY);
  }

  /**
   * Creates a batch whose array is made when the consumer extracts it. The maker runs on the
   * consumer's thread and should not block it. It does not run if the consumer drops the task. If
   * it throws, or returns an array that does not match the stream, extract_data returns the error,
   * and the stream ends.
   *
   * @param maker the function that creates the array
   * @return the batch
   */
  public static AsyncBatch made(Callable<DeviceArray> maker) {
    return new AsyncBatch(null, Objects.requireNonNull(maker, "maker"), Metadata.EMPTY);
  }

  /**
   * The array, which the receiver closes; null if it is made at extraction.
   *
   * @return the array, or null
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
   * Copies the batch with other metadata, which is passed with the task.
   *
   * @param more the metadata
   * @return the new batch
   */
  public AsyncBatch with(Metadata more) {
    return new AsyncBatch(array, maker, more);
  }
}
