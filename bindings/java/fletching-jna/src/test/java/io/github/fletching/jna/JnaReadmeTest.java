// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna;

import com.sun.jna.Pointer;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.jna.abi.ArrowArray;
import io.github.fletching.jna.abi.ArrowDeviceArray;
import io.github.fletching.testing.suite.ReadmeSuite;

class JnaReadmeTest extends ReadmeSuite {
  // The example begins
  static String consume(Pointer deviceArray) {
    DeviceType device = DeviceType.of(ArrowDeviceArray.getDeviceType(deviceArray));
    Pointer array = ArrowDeviceArray.getArray(deviceArray);
    String text = ArrowArray.getLength(array) + " values on " + device;
    ArrowArray.release(array);
    return text;
  }

  // The example ends

  @Override
  protected String run(long deviceArray) {
    return consume(new Pointer(deviceArray));
  }
}
