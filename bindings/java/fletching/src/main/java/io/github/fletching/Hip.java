// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

/**
 * HIP. Events are waited on, queried and destroyed with any current device: HIP tracks where they
 * belong.
 */
final class Hip extends CapturingVendor {
  static final Hip INSTANCE = new Hip();

  private static final int FIRST_WITH_EXTERNAL_EVENTS = 70_000_000; // 7.0

  private Hip() {
    super(HipTable.LIBRARY, CapturingCalls.HIP);
  }

  /**
   * Replaces 1, CUDA's legacy default stream, by NULL, the only value that older HIP versions
   * accept.
   */
  @Override
  long handleOf(DeviceStream stream) {
    return stream.handle() == 1 ? 0 : stream.handle();
  }

  /** Requires ROCm 7.0: 6.4 can record an event at each graph launch, but ignores the wait flag. */
  @Override
  void requireExternalEvents(boolean isRecord) {
    int version;
    try (Cell out = new Cell()) {
      check(HipTable.HIP_RUNTIME_GET_VERSION, out.address);
      version = C.getInt(out.address);
    }
    if (!HipTable.HIP_EVENT_RECORD_WITH_FLAGS.exists() || version < FIRST_WITH_EXTERNAL_EVENTS) {
      throw FletchingException.unsupported(
          library.title
              + ": no external events of graphs: expected ROCm 7.0 or later, got version "
              + version);
    }
  }

  @Override
  String textOf(Symbol function, int code) {
    return function.exists() ? Native.printable(function.call(code)) : "";
  }

  @Override
  Scope newScope(Cell out) {
    return new HipScope(out);
  }

  /** Sets the calling thread's device until closed. */
  private final class HipScope extends Scope {
    private boolean isChanged;
    private int before;

    HipScope(Cell out) {
      super(out);
    }

    @Override
    void enterStream(DeviceStream stream) {
      long device = stream.deviceId();
      if (Long.compareUnsigned(stream.handle(), LAST_DEFAULT) > 0) {
        device = (int) HipTable.HIP_GET_STREAM_DEVICE_ID.call(stream.handle());
        if (device < 0) {
          throw FletchingException.invalid(
              library.title
                  + ": hipGetStreamDeviceId failed with "
                  + device
                  + "; hint: check that the stream is alive");
        }
      }
      if (device > Integer.MAX_VALUE) {
        throw FletchingException.invalid(
            "device_id: not a HIP device: expected 0 to 2147483647, got " + device);
      }
      if (device >= 0) {
        enterDevice((int) device);
      }
    }

    private int getDevice() {
      checkHere(HipTable.HIP_GET_DEVICE, out.address);
      return C.getInt(out.address);
    }

    private void enterDevice(int device) {
      HipTable.HIP_SET_DEVICE.require();
      before = getDevice();
      if (device != before) {
        checkHere(HipTable.HIP_SET_DEVICE, device);
        isChanged = true;
      }
    }

    @Override
    void enterAny(long deviceId) {}

    @Override
    void getOrigin(Origin origin) {
      origin.device = getDevice();
    }

    @Override
    boolean enterOrigin(Origin origin) {
      return true;
    }

    @Override
    void enterPlace(Origin origin) {
      enterDevice(origin.device);
    }

    @Override
    DeviceStream resolve(DeviceStream stream) {
      return stream.resolved(0, getDevice(), null);
    }

    @Override
    void leave() {
      if (isChanged) {
        isChanged = false;
        int code = (int) HipTable.HIP_SET_DEVICE.call(before);
        if (code != 0) {
          HipTable.HIP_SET_DEVICE.call(before); // the first call may have reported an earlier error
        }
        check(HipTable.HIP_SET_DEVICE.name, code);
      }
    }
  }
}
