// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

/** The oracle covers only the platform that runs it; these values cover all three. */
class OffsetsTest {
  private static final LayoutClass[] TARGETS = {
    LayoutClass.of(8, 8), LayoutClass.of(4, 8), LayoutClass.of(4, 4)
  };

  private static void assertNumbers(StructOffsets struct, int[] sizes, int[] aligns) {
    for (int i = 0; i < TARGETS.length; i++) {
      assertEquals(sizes[i], struct.size(TARGETS[i]), struct.name() + " " + TARGETS[i]);
      assertEquals(aligns[i], struct.align(TARGETS[i]), struct.name() + " " + TARGETS[i]);
    }
  }

  @Test
  void sizesMatchRealCompilers() {
    assertNumbers(Offsets.ARROW_SCHEMA, new int[] {72, 48, 44}, new int[] {8, 8, 4});
    assertNumbers(Offsets.ARROW_ARRAY, new int[] {80, 64, 60}, new int[] {8, 8, 4});
    assertNumbers(Offsets.ARROW_DEVICE_ARRAY, new int[] {128, 104, 100}, new int[] {8, 8, 4});
    assertNumbers(Offsets.ARROW_ARRAY_STREAM, new int[] {40, 20, 20}, new int[] {8, 4, 4});
    assertNumbers(Offsets.ARROW_ASYNC_PRODUCER, new int[] {40, 20, 20}, new int[] {8, 4, 4});
  }

  @Test
  void structOffsetsDependOnTarget() {
    StructOffsets struct =
        new StructOffsets("S").size(1, 2, 3).align(4, 5, 6).field("a", 7, 8, 9).field("b", 0, 1, 2);
    assertEquals("S", struct.name());
    assertEquals(List.of("a", "b"), struct.fields());
    for (LayoutClass target : TARGETS) {
      int at = target.ordinal();
      assertEquals(1 + at, struct.size(target));
      assertEquals(4 + at, struct.align(target));
      assertEquals(7 + at, struct.offset(target, "a"));
      assertEquals(at, struct.offset(target, "b"));
    }
  }

  @Test
  void fieldsAfterEmbeddedStructFollowItsSize() {
    int[] events = {96, 76, 72};
    for (int i = 0; i < TARGETS.length; i++) {
      assertEquals(events[i], Offsets.ARROW_DEVICE_ARRAY.offset(TARGETS[i], "sync_event"));
    }
  }

  @Test
  void rejectsUnknownFieldAndTarget() {
    Exception field =
        assertThrows(
            IllegalArgumentException.class,
            () -> Offsets.ARROW_ARRAY.offset(TARGETS[0], "nothing"));
    assertTrue(field.getMessage().contains("ArrowArray has no field nothing"));
    Exception target =
        assertThrows(UnsupportedOperationException.class, () -> LayoutClass.of(16, 8));
    assertTrue(target.getMessage().contains("pointers of 16 bytes"));
  }
}
