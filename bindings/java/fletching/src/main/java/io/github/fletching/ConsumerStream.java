// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.POINTER;

import io.github.fletching.abi.DeviceType;
import java.util.Optional;

/**
 * The stream argument of {@code __dlpack__}, which a consumer passes to a producer. Immutable.
 *
 * <p>See "__dlpack__" in the Python array API.
 */
public final class ConsumerStream {
  private final Ordering ordering;
  private final DeviceStream stream; // null without Ordering.STREAM

  private ConsumerStream(Ordering ordering, DeviceStream stream) {
    this.ordering = ordering;
    this.stream = stream;
  }

  /**
   * Parses a stream number. CUDA: 1 is the legacy default stream, 2 the per-thread stream, and 0 is
   * invalid. ROCm: 0 is the default stream, 1 and 2 are invalid. On both, -1 disables ordering, and
   * other positive numbers are handles. Other devices have no streams and reject every number.
   *
   * @param deviceType the type of the device that the data is on
   * @param number the argument
   * @return the stream
   * @throws FletchingException EINVAL for a number that is invalid on the device
   */
  public static ConsumerStream of(DeviceType deviceType, long number) {
    boolean isCuda = RuntimeKind.of(deviceType) == RuntimeKind.CUDA;
    if (!hasStreams(deviceType)) {
      throw invalid(deviceType, number, "None, because the device has no streams");
    }
    if (number == -1) {
      return new ConsumerStream(Ordering.NONE, null);
    }
    if (number < -1) {
      throw invalid(deviceType, number, "-1 for no synchronization, or a stream");
    }
    if (isCuda && number == 0) {
      throw invalid(
          deviceType, number, "1 for the legacy default stream or 2 for the per-thread one");
    }
    if (!isCuda && (number == 1 || number == 2)) {
      throw invalid(deviceType, number, "0 for the default stream");
    }
    if (POINTER < 8 && number > 0xFFFF_FFFFL) {
      throw invalid(deviceType, number, "a handle of this process");
    }
    return on(DeviceStream.of(deviceType, number));
  }

  /**
   * Parses Python's None. It means the default stream on CUDA and ROCm. It means host ordering on
   * devices without streams, and for pinned and managed memory, which the host can read; the host
   * then also waits for the default stream.
   *
   * @param deviceType the type of the device that the data is on
   * @return the stream
   */
  public static ConsumerStream none(DeviceType deviceType) {
    // Consumers of host-readable memory may not know streams at all.
    if (!hasStreams(deviceType) || isHostReadable(deviceType)) {
      return new ConsumerStream(Ordering.HOST, null);
    }
    return of(deviceType, RuntimeKind.of(deviceType) == RuntimeKind.CUDA ? 1 : 0);
  }

  /** Orders a stream. Any handle is valid, such as one from another framework. */
  static ConsumerStream on(DeviceStream stream) {
    return new ConsumerStream(Ordering.STREAM, stream);
  }

  /** No ordering, on any device. */
  static ConsumerStream unordered() {
    return new ConsumerStream(Ordering.NONE, null);
  }

  static boolean hasStreams(DeviceType type) {
    RuntimeKind runtime = RuntimeKind.of(type);
    return runtime == RuntimeKind.CUDA || runtime == RuntimeKind.HIP;
  }

  /** Whether this process can read the memory once no work on it is pending. */
  static boolean isHostReadable(DeviceType type) {
    return type.accessibleFrom().contains(DeviceType.CPU);
  }

  private static FletchingException invalid(DeviceType type, long number, String expected) {
    return FletchingException.invalid(
        "stream: invalid on " + type + ": expected " + expected + ", got " + number);
  }

  /**
   * The ordering: whether the host, a stream, or neither waits for the producer's work.
   *
   * @return the ordering
   */
  public Ordering ordering() {
    return ordering;
  }

  /**
   * The stream for {@link Ordering#STREAM}.
   *
   * @return the stream; empty for any other ordering
   */
  public Optional<DeviceStream> stream() {
    return Optional.ofNullable(stream);
  }

  @Override
  public String toString() {
    return ordering == Ordering.STREAM ? stream.toString() : "order " + ordering;
  }
}
