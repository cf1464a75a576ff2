// SPDX-License-Identifier: Apache-2.0

package cuda;

import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import io.github.fletching.DeviceStream;
import io.github.fletching.abi.DeviceType;

/** The parts of libcuda that a CUDA program already uses: contexts, streams, memory and copies. */
public interface Driver extends Library {
  Driver C = Native.load("cuda", Driver.class);

  // The cuda.h functions that the examples call.

  int cuInit(int flags);

  int cuDevicePrimaryCtxRetain(PointerByReference context, int device);

  int cuCtxSetCurrent(Pointer context);

  int cuStreamCreate(LongByReference stream, int flags);

  int cuStreamSynchronize(long stream);

  int cuMemAlloc_v2(LongByReference address, long size);

  int cuMemFree_v2(long address);

  int cuMemsetD8Async(long address, byte value, long size, long stream);

  int cuMemcpyDtoHAsync_v2(Pointer to, long from, long size, long stream);

  /** Makes the primary context of a device current. */
  static void useDevice(int device) {
    PointerByReference context = new PointerByReference();
    check(C.cuInit(0));
    check(C.cuDevicePrimaryCtxRetain(context, device));
    check(C.cuCtxSetCurrent(context.getValue()));
  }

  /** Returns a new stream that does not synchronize with the default stream. */
  static DeviceStream newStream() {
    LongByReference stream = new LongByReference();
    check(C.cuStreamCreate(stream, 1));
    return DeviceStream.of(DeviceType.CUDA, stream.getValue());
  }

  /** Allocates memory on the current device and returns its address. */
  static long allocate(long size) {
    LongByReference address = new LongByReference();
    check(C.cuMemAlloc_v2(address, size));
    return address.getValue();
  }

  /** Throws unless the CUresult is success. */
  static void check(int result) {
    if (result != 0) {
      throw new IllegalStateException("CUresult " + result);
    }
  }
}
