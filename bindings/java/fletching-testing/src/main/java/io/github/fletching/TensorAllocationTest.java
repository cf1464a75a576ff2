// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.fletching.abi.DataTypeCode;
import io.github.fletching.abi.DlpackConstants;
import io.github.fletching.abi.Offsets;
import io.github.fletching.testing.suite.OnLibraryCopy;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Memory for the result is allocated before the framework is called for a tensor. */
@OnLibraryCopy
class TensorAllocationTest {
  @Test
  void memoryIsReservedBeforeTensor() {
    AtomicInteger made = new AtomicInteger();
    long table = C.allocate(Offsets.DL_PACK_EXCHANGE_API.size(C.target()));
    C.putInt(
        table + Fields.EXCHANGE_API_HEADER_VERSION + Fields.VERSION_MAJOR,
        (int) DlpackConstants.DLPACK_MAJOR_VERSION);
    C.putAddress(
        table + Fields.EXCHANGE_API_MANAGED_TENSOR_ALLOCATOR,
        C.stub(
            "allocator",
            "iaaaa",
            -1,
            (prototype, out, context, setError) -> made.incrementAndGet()));
    DlpackExchange exchange = DlpackExchange.find(table).orElseThrow();
    TensorBuilder prototype = new TensorBuilder(DataType.of(DataTypeCode.INT, 32), 1);
    assertThrows(FletchingException.class, () -> exchange.allocate(prototype));
    assertEquals(1, made.get());
    Slot.close(true);
    assertThrows(IllegalStateException.class, () -> exchange.allocate(prototype));
    Slot.close(false);
    assertEquals(1, made.get());
    C.free(table);
  }
}
