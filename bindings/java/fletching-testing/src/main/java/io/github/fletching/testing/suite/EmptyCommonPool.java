// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import io.github.fletching.AsyncDeviceStream;
import io.github.fletching.AsyncDeviceStreams;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.abi.DeviceType;

/** A program that sends a stream when the common pool may have no threads. */
public final class EmptyCommonPool {
  private EmptyCommonPool() {}

  /** Prints whether the schema arrived. */
  public static void main(String[] arguments) throws Exception {
    try (AsyncDeviceStream stream = new AsyncDeviceStream()) {
      AsyncDeviceStreams.send(
          new SchemaBuilder("i").build(),
          DeviceType.CPU,
          subscriber -> {},
          stream.handlerAddress());
      stream.schema().toCompletableFuture().join().close();
      System.out.println("arrived");
    }
  }
}
