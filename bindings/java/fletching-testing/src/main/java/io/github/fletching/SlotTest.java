// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.fletching.testing.suite.OnLibraryCopy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Reuse of the memory of released structs. */
@OnLibraryCopy
class SlotTest {
  @Test
  void freedSlotIsNotCountedTwice() {
    List<Schema> many = new ArrayList<>();
    for (int i = 0; i < 2000; i++) { // more than the number kept for reuse
      many.add(new SchemaBuilder("i").build());
    }
    assertEquals(2000, Slot.countOpen());
    many.forEach(Schema::close);
    assertEquals(0, Slot.countOpen());
  }
}
