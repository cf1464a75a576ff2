// SPDX-License-Identifier: Apache-2.0

// Exports an iterator of batches as a device stream, and reads it as a consumer does.
// Prints: a batch of 3 on cpu

import io.github.fletching.ArrayBuilder;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.abi.DeviceType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.stream.IntStream;

final class Streams {
  static DeviceArray batch(int length) {
    ByteBuffer keys = ByteBuffer.allocateDirect(8 * length).order(ByteOrder.nativeOrder());
    IntStream.range(0, length).forEach(keys::putLong);
    return new ArrayBuilder(length).buffers(null, keys).build(null).toDevice();
  }

  static DeviceArrayStream produce() {
    Schema schema = new SchemaBuilder("l").name("key").build();
    return DeviceArrayStream.of(
        schema, DeviceType.CPU, IntStream.rangeClosed(1, 3).mapToObj(Streams::batch).iterator());
  }

  public static void main(String[] arguments) {
    // Any library can be on the other side of the address.
    try (DeviceArrayStream source = produce();
        DeviceArrayStream stream = DeviceArrayStream.wrap(source.address())) {
      for (DeviceArray batch : stream) {
        try (batch) {
          System.out.println("a batch of " + batch.length() + " on " + batch.deviceType());
        }
      }
    }
  }
}
