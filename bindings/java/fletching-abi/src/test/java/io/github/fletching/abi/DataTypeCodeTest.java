// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.HashSet;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class DataTypeCodeTest {
  @Test
  void ofKnownValueHasNames() {
    assertSame(DataTypeCode.BFLOAT, DataTypeCode.of(4));
    assertEquals("bfloat", DataTypeCode.BFLOAT.toString());
    assertEquals(Optional.of("kDLBfloat"), DataTypeCode.BFLOAT.dlpackName());
    for (DataTypeCode code : DataTypeCode.known()) {
      assertSame(code, DataTypeCode.of(code.value()));
    }
  }

  @Test
  void ofUnknownValueKeepsValue() {
    DataTypeCode code = DataTypeCode.of(255);
    assertEquals(255, code.value());
    assertFalse(code.isKnown());
    assertEquals("unknown(255)", code.toString());
    assertEquals(Optional.empty(), code.dlpackName());
  }

  @Test
  void ofRejectsValueOutOfRange() {
    assertThrows(IllegalArgumentException.class, () -> DataTypeCode.of(256));
    assertThrows(IllegalArgumentException.class, () -> DataTypeCode.of(-1));
  }

  @Test
  void equalsComparesValues() {
    assertEquals(DataTypeCode.of(99), DataTypeCode.of(99));
    assertEquals(DataTypeCode.of(99).hashCode(), DataTypeCode.of(99).hashCode());
    assertNotEquals(DataTypeCode.of(99), DataTypeCode.of(98));
    assertEquals(DataTypeCode.known().size(), new HashSet<>(DataTypeCode.known()).size());
  }
}
