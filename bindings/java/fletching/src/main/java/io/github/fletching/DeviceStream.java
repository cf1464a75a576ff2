// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.DeviceType;
import java.util.Objects;

/**
 * A caller-owned stream or queue of a runtime, with a choice for stream capture. The handle may be
 * used on any thread, and must be valid while this object is used. Immutable.
 */
public final class DeviceStream {
  private final DeviceType deviceType;
  private final long handle;
  private final long deviceId;
  private final OnCapture onCapture;
  final Origin origin; // CUDA default streams only; null for the current context

  private DeviceStream(
      DeviceType deviceType, long handle, long deviceId, OnCapture onCapture, Origin origin) {
    this.deviceType = Objects.requireNonNull(deviceType, "deviceType");
    this.handle = handle;
    this.deviceId = deviceId;
    this.onCapture = Objects.requireNonNull(onCapture, "onCapture");
    this.origin = origin;
  }

  /**
   * Creates a stream that rejects operations during a capture. The handle is a CUstream,
   * cudaStream_t, hipStream_t or cl_command_queue, or a value that the waiter of another device
   * type accepts. CUDA and HIP have default streams: 0 and 1 are the legacy default stream, 2 is
   * the calling thread's. They belong to the array's device, whichever device is current, unless
   * {@link #onDevice} names another device. OpenCL has no default stream.
   *
   * @param deviceType the type of the device
   * @param handle the runtime's handle
   * @return the stream
   */
  public static DeviceStream of(DeviceType deviceType, long handle) {
    return new DeviceStream(deviceType, handle, -1, OnCapture.REFUSE, null);
  }

  /**
   * Copies the stream with another choice for captures.
   *
   * @param choice the behavior during a capture
   * @return the new stream
   */
  public DeviceStream onCapture(OnCapture choice) {
    return new DeviceStream(deviceType, handle, deviceId, choice, origin);
  }

  /**
   * Copies the stream with a device, which matters for a default stream.
   *
   * @param id the device id within the type; -1 for the array's device
   * @return the new stream
   */
  public DeviceStream onDevice(long id) {
    return new DeviceStream(deviceType, handle, id, onCapture, origin);
  }

  /** Copies the stream with the handle that identifies a default stream on another thread. */
  DeviceStream resolved(long newHandle, long id, Origin newOrigin) {
    return new DeviceStream(deviceType, newHandle, id, onCapture, newOrigin);
  }

  /** Returns the stream, with the given device if it has none. */
  DeviceStream completed(long id) {
    return deviceId < 0 ? onDevice(id) : this;
  }

  /**
   * The device type of the stream.
   *
   * @return the device type
   */
  public DeviceType deviceType() {
    return deviceType;
  }

  /**
   * The runtime's handle.
   *
   * @return the handle
   */
  public long handle() {
    return handle;
  }

  /**
   * The device id within the type.
   *
   * @return the device id; -1 for the array's device
   */
  public long deviceId() {
    return deviceId;
  }

  /**
   * The behavior of operations while the stream is being captured.
   *
   * @return the behavior
   */
  public OnCapture onCapture() {
    return onCapture;
  }

  /** Returns this stream. Throws EINVAL if it belongs to another runtime. */
  DeviceStream checked(DeviceType expected) {
    boolean isOther = !isOfRuntime(expected);
    if (isOther || (RuntimeKind.of(deviceType) == null && !deviceType.equals(expected))) {
      throw FletchingException.invalid(
          String.format(
              "stream of another runtime: expected one of %s, got one of %s",
              expected, deviceType));
    }
    return this;
  }

  boolean isOfRuntime(DeviceType type) {
    return RuntimeKind.of(deviceType) == RuntimeKind.of(type);
  }

  @Override
  public String toString() {
    return "stream 0x" + Long.toHexString(handle) + " of " + deviceType;
  }
}
