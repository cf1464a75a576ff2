// SPDX-License-Identifier: Apache-2.0

// Shares the columns of one array between several users. The last user releases the array.
// Prints: 3 prices, then released

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.Shared;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

final class Columns {
  static ArrayBuilder zeros() {
    ByteBuffer values = ByteBuffer.allocateDirect(24).order(ByteOrder.nativeOrder());
    return new ArrayBuilder(3).buffers(null, values);
  }

  static Array table() {
    AutoCloseable memory = () -> System.out.println(", then released");
    return new ArrayBuilder(3).buffers(0).child(zeros()).child(zeros()).build(memory);
  }

  public static void main(String[] arguments) {
    Array prices;
    try (Shared<Array> table = table().share()) {
      table.column(0).close();
      prices = table.column(1);
    }
    try (prices) {
      System.out.print(prices.length() + " prices");
    }
  }
}
