// SPDX-License-Identifier: Apache-2.0

import com.sun.jna.Memory;
import io.github.fletching.abi.DataTypeCode;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.jna.abi.ArrowDeviceArray;
import io.github.fletching.jna.abi.DLDataType;

/** Prints Java's names for device types and data-type codes, each read from a JNA struct. */
final class JnaProbe {
  private JnaProbe() {}

  public static void main(String[] arguments) {
    for (String argument : arguments) {
      int number = Integer.parseInt(argument.substring(argument.indexOf(':') + 1));
      if (argument.startsWith("code:")) {
        Memory type = DLDataType.allocate();
        DLDataType.setCode(type, number);
        System.out.println(DataTypeCode.of(DLDataType.getCode(type)));
        continue;
      }
      Memory array = ArrowDeviceArray.allocate();
      ArrowDeviceArray.setDeviceType(array, number);
      System.out.println(DeviceType.of(ArrowDeviceArray.getDeviceType(array)));
    }
  }
}
