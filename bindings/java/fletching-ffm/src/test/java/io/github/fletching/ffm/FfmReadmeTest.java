// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.ffm.abi.ArrowArray;
import io.github.fletching.ffm.abi.ArrowDeviceArray;
import io.github.fletching.testing.suite.ReadmeSuite;
import java.lang.foreign.MemorySegment;

class FfmReadmeTest extends ReadmeSuite {
  // The example begins
  static String consume(MemorySegment pointer) {
    MemorySegment deviceArray = ArrowDeviceArray.at(pointer);
    DeviceType device = DeviceType.of(ArrowDeviceArray.getDeviceType(deviceArray));
    MemorySegment array = ArrowDeviceArray.getArray(deviceArray);
    String text = ArrowArray.getLength(array) + " values on " + device;
    ArrowArray.release(array);
    return text;
  }

  // The example ends

  @Override
  protected String run(long deviceArray) {
    return consume(MemorySegment.ofAddress(deviceArray));
  }
}
