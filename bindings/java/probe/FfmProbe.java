// SPDX-License-Identifier: Apache-2.0

import io.github.fletching.abi.DataTypeCode;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.ffm.abi.ArrowDeviceArray;
import io.github.fletching.ffm.abi.DLDataType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Prints Java's names for device types and data-type codes, each read from an FFM struct. */
final class FfmProbe {
  private FfmProbe() {}

  public static void main(String[] arguments) {
    try (Arena arena = Arena.ofConfined()) {
      for (String argument : arguments) {
        int number = Integer.parseInt(argument.substring(argument.indexOf(':') + 1));
        if (argument.startsWith("code:")) {
          MemorySegment type = arena.allocate(DLDataType.LAYOUT);
          DLDataType.setCode(type, number);
          System.out.println(DataTypeCode.of(DLDataType.getCode(type)));
          continue;
        }
        MemorySegment array = arena.allocate(ArrowDeviceArray.LAYOUT);
        ArrowDeviceArray.setDeviceType(array, number);
        System.out.println(DeviceType.of(ArrowDeviceArray.getDeviceType(array)));
      }
    }
  }
}
