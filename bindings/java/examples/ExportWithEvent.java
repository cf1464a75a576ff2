// SPDX-License-Identifier: Apache-2.0

// Exports an array that a CUDA stream is still writing: its event completes after the write.
// Prints: 1000 values, ready: true

import cuda.Driver;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.abi.DeviceType;

final class ExportWithEvent {
  static DeviceArray produce(int length, DeviceStream stream) {
    long memory = Driver.allocate(length);
    Driver.check( // your kernels go here
        Driver.C.cuMemsetD8Async(memory, (byte) 7, length, stream.handle()));

    AutoCloseable owner = () -> Driver.check(Driver.C.cuMemFree_v2(memory));
    DeviceArray array =
        new ArrayBuilder(length).buffers(0, memory).buildOn(DeviceType.CUDA, 0, 0, owner);
    array.exportWithEvent(stream);
    return array;
  }

  public static void main(String[] arguments) {
    Driver.useDevice(0);
    try (DeviceArray array = produce(1000, Driver.newStream());
        // Any library can be on the other side of the address.
        DeviceArray received = DeviceArray.wrap(array.address())) {
      received.synchronize();
      System.out.println(received.length() + " values, ready: " + received.isReady());
    }
  }
}
