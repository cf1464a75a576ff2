// SPDX-License-Identifier: Apache-2.0

import io.github.fletching.abi.DataTypeCode;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.jna.abi.ArrowDeviceArray;
import io.github.fletching.jna.abi.DLDataType;

/** Prints how Java names device types and data-type codes: each number goes through a struct of JNA. */
final class JnaProbe {
  private JnaProbe() {}

  public static void main(String[] arguments) {
    for (String argument : arguments) {
      int number = Integer.parseInt(argument.substring(argument.indexOf(':') + 1));
      if (argument.startsWith("code:")) {
        DLDataType type = new DLDataType();
        type.code = (byte) number;
        type.write();
        type.read();
        System.out.println(DataTypeCode.of(type.code));
        continue;
      }
      ArrowDeviceArray array = new ArrowDeviceArray();
      array.deviceType = number;
      array.write();
      array.read();
      System.out.println(DeviceType.of(array.deviceType));
    }
  }
}
