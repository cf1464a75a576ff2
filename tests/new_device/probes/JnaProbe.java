// SPDX-License-Identifier: Apache-2.0

import io.github.fletching.abi.DeviceType;
import io.github.fletching.jna.abi.ArrowDeviceArray;

/** Prints how Java names device types: each number goes through a device array of JNA. */
final class JnaProbe {
  private JnaProbe() {}

  public static void main(String[] arguments) {
    for (String number : arguments) {
      ArrowDeviceArray array = new ArrowDeviceArray();
      array.deviceType = Integer.parseInt(number);
      array.write();
      array.read();
      System.out.println(DeviceType.of(array.deviceType));
    }
  }
}
