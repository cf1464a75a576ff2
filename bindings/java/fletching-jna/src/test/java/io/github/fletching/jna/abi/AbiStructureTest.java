// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.sun.jna.Structure.FieldOrder;
import io.github.fletching.abi.Offsets;
import org.junit.jupiter.api.Test;

// Names no field or callback of the spec, so that it compiles whatever the spec says.
class AbiStructureTest {
  /** An ArrowAsyncTask with its fields of the wrong size. */
  @FieldOrder({"extractData", "privateData"})
  public static final class Narrow extends AbiStructure {
    public int extractData;
    public int privateData;
  }

  /** As large as an ArrowAsyncProducer, with fields at other places. */
  @FieldOrder({"deviceType", "request", "cancel", "additionalMetadata", "privateData"})
  public static final class Shifted extends AbiStructure {
    public long deviceType;
    public int request;
    public int cancel;
    public long additionalMetadata;
    public long[] privateData = new long[2];
  }

  @Test
  void aWrongLayoutIsSeen() {
    Error number = assertThrows(Error.class, () -> new ArrowArray().check(Offsets.ARROW_SCHEMA));
    assertEquals(
        "ArrowSchema: number of fields is 10 here, the Arrow specification says 9 for 64bit"
            + " targets",
        number.getMessage());
    Error size = assertThrows(Error.class, () -> new Narrow().check(Offsets.ARROW_ASYNC_TASK));
    assertEquals(
        "ArrowAsyncTask: size is 8 here, the Arrow specification says 16 for 64bit targets",
        size.getMessage());
    Error offset =
        assertThrows(Error.class, () -> new Shifted().check(Offsets.ARROW_ASYNC_PRODUCER));
    assertEquals(
        "ArrowAsyncProducer.cancel: offset is 12 here, the Arrow specification says 16 for 64bit"
            + " targets",
        offset.getMessage());
  }

  @Test
  void aCallbackThatIsNullSaysSo() {
    Exception e =
        assertThrows(
            IllegalStateException.class,
            () -> AbiStructure.call(int.class, null, "ArrowArrayStream.get_next"));
    assertEquals("ArrowArrayStream.get_next is NULL", e.getMessage());
  }
}
