// SPDX-License-Identifier: Apache-2.0

import io.github.fletching.abi.DeviceType;
import io.github.fletching.ffm.abi.ArrowDeviceArray;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Prints how Java names device types: each number goes through a device array of FFM. */
final class FfmProbe {
  private FfmProbe() {}

  public static void main(String[] arguments) {
    try (Arena arena = Arena.ofConfined()) {
      for (String number : arguments) {
        MemorySegment array = arena.allocate(ArrowDeviceArray.LAYOUT);
        ArrowDeviceArray.setDeviceType(array, Integer.parseInt(number));
        System.out.println(DeviceType.of(ArrowDeviceArray.getDeviceType(array)));
      }
    }
  }
}
