// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

class DeviceTypeTest {
  @Test
  void ofKnownValueHasNames() {
    DeviceType type = DeviceType.of(3);
    assertSame(type, DeviceType.of(3));
    assertTrue(type.isKnown());
    assertEquals("cuda_host", type.toString());
    assertEquals(Optional.of("ARROW_DEVICE_CUDA_HOST"), type.arrowMacro());
    assertEquals(Optional.of("kDLCUDAHost"), type.dlpackName());
    assertEquals(Optional.of(EventPointer.ADDRESS_OF_HANDLE), type.eventPointer());
    assertEquals(Optional.of("cudaEvent_t*"), type.eventType());
  }

  @Test
  void ofDlpackOnlyDeviceIsKnown() {
    assertEquals("maia", DeviceType.of(17).name());
    assertEquals("trn", DeviceType.of(18).name());
    assertEquals(Optional.empty(), DeviceType.of(18).arrowMacro());
    assertEquals(Optional.of("kDLTrn"), DeviceType.of(18).dlpackName());
  }

  @Test
  void ofUnknownValueKeepsValue() {
    for (int value : new int[] {9999, 5, 6, 0, -1, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
      DeviceType type = DeviceType.of(value);
      assertEquals(value, type.value());
      assertFalse(type.isKnown());
      assertEquals("unknown(" + value + ")", type.toString());
      assertEquals(Optional.empty(), type.arrowMacro());
      assertEquals(Optional.empty(), type.dlpackName());
      assertEquals(Optional.empty(), type.eventPointer());
      assertEquals(Optional.empty(), type.eventType());
    }
  }

  @Test
  void reservedValueIsNamedUnreleased() {
    assertEquals("unreleased(tpu_host, 20)", DeviceType.of(20).name());
    assertFalse(DeviceType.of(20).isKnown());
    assertEquals("unreleased(bcomplex, 18)", DataTypeCode.of(18).name());
  }

  @Test
  void equalsComparesValues() {
    assertEquals(DeviceType.of(9999), DeviceType.of(9999));
    assertEquals(DeviceType.of(9999).hashCode(), DeviceType.of(9999).hashCode());
    assertNotEquals(DeviceType.of(9999), DeviceType.of(9998));
    assertNotEquals(DeviceType.of(1), "cpu");
    Set<DeviceType> all = new HashSet<>(DeviceType.known());
    assertEquals(DeviceType.known().size(), all.size());
    assertTrue(all.contains(DeviceType.of(2)));
  }
}
