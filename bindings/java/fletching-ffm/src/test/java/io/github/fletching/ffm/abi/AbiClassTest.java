// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm.abi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.Offsets;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.StructLayout;
import org.junit.jupiter.api.Test;

// Names no field or callback of the spec, so that it compiles with any spec.
class AbiClassTest {
  private static String layoutError(MemoryLayout... members) {
    Error error = assertThrows(Error.class, () -> Abi.layout(Offsets.ARROW_ASYNC_TASK, members));
    return error.getMessage();
  }

  @Test
  void layoutHasNameAndSize() {
    MemoryLayout function = ADDRESS.withName("extract_data");
    MemoryLayout data = ADDRESS.withName("private_data");
    StructLayout layout = Abi.layout(Offsets.ARROW_ASYNC_TASK, function, data);
    assertEquals("ArrowAsyncTask", layout.name().orElseThrow());
    assertEquals(16, layout.byteSize());
    assertEquals(8, Abi.offsetOf(layout, "private_data"));
  }

  @Test
  void layoutRejectsMismatch() {
    assertTrue(layoutError(ADDRESS.withName("extract_data")).contains("size is 8 here"));
    MemoryLayout[] swapped = {ADDRESS.withName("private_data"), ADDRESS.withName("extract_data")};
    assertTrue(layoutError(swapped).contains("fields are [private_data, extract_data]"));
    MemoryLayout padding = MemoryLayout.paddingLayout(4);
    MemoryLayout narrow = JAVA_INT.withName("extract_data");
    MemoryLayout shifted = JAVA_INT.withName("private_data");
    String alignment = layoutError(narrow, padding, shifted, padding);
    assertTrue(alignment.contains("alignment is 4 here"), alignment);
    assertEquals(
        "ArrowAsyncTask.private_data: offset is 4 here, the Arrow specification says 8 for "
            + LayoutClass.of(8, 8)
            + " targets",
        layoutError(narrow, shifted, ADDRESS));
  }
}
