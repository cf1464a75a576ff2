// SPDX-License-Identifier: Apache-2.0

// Imports an array that is still being written, and makes your stream wait for it. The host waits
// only when it needs the result.
// Prints: 1000 values, the last is 7

import com.sun.jna.Memory;
import cuda.Driver;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;

final class ReleaseAfter {
  static void copyToHost(DeviceArray array, Memory to, DeviceStream stream) {
    array.waitOn(stream);
    long values = array.buffers()[1];
    Driver.check( // your kernels go here
        Driver.C.cuMemcpyDtoHAsync_v2(to, values, to.size(), stream.handle()));
    array.releaseAfter(stream); // close would free memory that the copy still reads
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
