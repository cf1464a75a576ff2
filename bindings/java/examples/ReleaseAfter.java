// SPDX-License-Identifier: Apache-2.0

// Imports an array that is still being written to, and makes your stream wait for it. The host
// does not wait before it needs the result.
// Prints: 1000 values, the last is 7

import com.sun.jna.Memory;
import cuda.Driver;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;

final class ReleaseAfter {
  static void copyToHost(DeviceArray array, Memory to, DeviceStream stream) {
    array.waitOn(stream);
    long values = array.buffers()[1];
    Driver.check( // in place of your kernels
        Driver.C.cuMemcpyDtoHAsync_v2(to, values, to.size(), stream.handle()));
    array.releaseAfter(stream); // a close would free the memory under the copy
  }

  public static void main(String[] arguments) {
    Driver.useDevice(0);
    DeviceArray array = ExportWithEvent.produce(1000, Driver.newStream());
    DeviceStream stream = Driver.newStream();
    Memory values = new Memory(array.length());
    copyToHost(array, values, stream);
    Driver.check(Driver.C.cuStreamSynchronize(stream.handle()));
    System.out.println(values.size() + " values, the last is " + values.getByte(999));
  }
}
