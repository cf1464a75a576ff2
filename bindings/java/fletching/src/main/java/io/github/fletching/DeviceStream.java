// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.DeviceType;

/**
 * A stream or queue of a runtime, which is the caller's, and what to do while it is captured. Its
 * handle may be used on any thread, and is alive as long as this is used. Immutable.
 */
public final class DeviceStream {
  private final DeviceType deviceType;
  private final long handle;
  private final OnCapture onCapture;

  private DeviceStream(DeviceType deviceType, long handle, OnCapture onCapture) {
    this.deviceType = deviceType;
    this.handle = handle;
    this.onCapture = onCapture;
  }

  /**
   * The handle is the CUstream, cudaStream_t, hipStream_t or cl_command_queue, or what the waiter
   * of another device type accepts. CUDA and HIP have default streams: 0 and 1 are the legacy one,
   * 2 is the calling thread's. OpenCL has none. It refuses a capture.
   *
   * @param deviceType the type of the device
   * @param handle the handle of the runtime
   * @return the stream
   */
  public static DeviceStream of(DeviceType deviceType, long handle) {
    return new DeviceStream(deviceType, handle, OnCapture.REFUSE);
  }

  /**
   * The same stream with a choice for captures.
   *
   * @param choice what to do
   * @return this stream
   */
  public DeviceStream onCapture(OnCapture choice) {
    return new DeviceStream(deviceType, handle, choice);
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
   * What an operation does while the stream is captured.
   *
   * @return this stream
   */
  public OnCapture onCapture() {
    return onCapture;
  }

  /** Refuses a stream of another runtime. */
  void check(String operation, DeviceType expected) {
    RuntimeKind own = RuntimeKind.of(deviceType);
    if (own != RuntimeKind.of(expected) || (own == null && !deviceType.equals(expected))) {
      throw FletchingException.invalid(
          String.format(
              "%s: stream of another runtime: expected one of %s, got one of %s",
              operation, expected, deviceType));
    }
  }

  @Override
  public String toString() {
    return "stream 0x" + Long.toHexString(handle) + " of " + deviceType;
  }
}
