// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.DeviceType;
import java.util.Objects;

/**
 * A stream or queue of a runtime, which is the caller's, and what to do while it is captured. Its
 * handle may be used on any thread, and is alive as long as this is used. Immutable.
 */
public final class DeviceStream {
  private final DeviceType deviceType;
  private final long handle;
  private final long deviceId;
  private final OnCapture onCapture;
  final Origin origin; // of CUDA, for a default stream; null for the current context

  private DeviceStream(
      DeviceType deviceType, long handle, long deviceId, OnCapture onCapture, Origin origin) {
    this.deviceType = Objects.requireNonNull(deviceType, "deviceType");
    this.handle = handle;
    this.deviceId = deviceId;
    this.onCapture = Objects.requireNonNull(onCapture, "onCapture");
    this.origin = origin;
  }

  /**
   * The handle is the CUstream, cudaStream_t, hipStream_t or cl_command_queue, or what the waiter
   * of another device type accepts. CUDA and HIP have default streams: 0 and 1 are the legacy one,
   * 2 is the calling thread's. They are those of the array's device, whichever device is current,
   * unless {@link #onDevice} names another device. OpenCL has none. It refuses a capture.
   *
   * @param deviceType the type of the device
   * @param handle the handle of the runtime
   * @return the stream
   */
  public static DeviceStream of(DeviceType deviceType, long handle) {
    return new DeviceStream(deviceType, handle, -1, OnCapture.REFUSE, null);
  }

  /**
   * The same stream with a choice for captures.
   *
   * @param choice what to do
   * @return this stream
   */
  public DeviceStream onCapture(OnCapture choice) {
    return new DeviceStream(deviceType, handle, deviceId, choice, origin);
  }

  /**
   * The same stream with a device, which matters for a default stream.
   *
   * @param id which device of the type; -1 for the array's
   * @return this stream
   */
  public DeviceStream onDevice(long id) {
    return new DeviceStream(deviceType, handle, id, onCapture, origin);
  }

  /** Another default stream, or the same one on another thread. */
  DeviceStream resolved(long newHandle, long id, Origin newOrigin) {
    return new DeviceStream(deviceType, newHandle, id, onCapture, newOrigin);
  }

  /** The stream with the array's device if it names none. */
  DeviceStream completed(long id) {
    return deviceId < 0 ? onDevice(id) : this;
  }

  /**
   * The type of the devices that the stream is for.
   *
   * @return the type of the devices that the stream is for
   */
  public DeviceType deviceType() {
    return deviceType;
  }

  /**
   * The handle.
   *
   * @return the handle
   */
  public long handle() {
    return handle;
  }

  /**
   * Which device of the type.
   *
   * @return the device; -1 for the array's
   */
  public long deviceId() {
    return deviceId;
  }

  /**
   * What an operation does while the stream is captured.
   *
   * @return this stream
   */
  public OnCapture onCapture() {
    return onCapture;
  }

  /** Refuses a stream of another runtime. */
  void check(String operation, DeviceType expected) {
    boolean isOther = !isOfRuntime(expected);
    if (isOther || (RuntimeKind.of(deviceType) == null && !deviceType.equals(expected))) {
      throw FletchingException.invalid(
          String.format(
              "%s: stream of another runtime: expected one of %s, got one of %s",
              operation, expected, deviceType));
    }
  }

  boolean isOfRuntime(DeviceType type) {
    return RuntimeKind.of(deviceType) == RuntimeKind.of(type);
  }

  @Override
  public String toString() {
    return "stream 0x" + Long.toHexString(handle) + " of " + deviceType;
  }
}
