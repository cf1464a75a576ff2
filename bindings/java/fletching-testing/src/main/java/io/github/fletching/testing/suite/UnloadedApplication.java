// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayStream;
import io.github.fletching.AsyncDeviceStream;
import io.github.fletching.AsyncDeviceStreams;
import io.github.fletching.DeviceArray;
import io.github.fletching.Owner;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.abi.DeviceType;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/** An application that is unloaded, with its uses of the library in a separate class loader. */
public final class UnloadedApplication {
  private UnloadedApplication() {}

  /**
   * Uses all kinds of callbacks and shuts the library down. Returns the messages of the invalid
   * calls.
   */
  public static List<String> run() {
    Schema schema = new SchemaBuilder("n").build();
    Array array = new ArrayBuilder(1).build(null);
    try (ArrayStream stream = ArrayStream.of(schema, List.of(array).iterator())) {
      Raw there = Raw.stream();
      stream.moveTo(there.address());
      Raw batch = Raw.array();
      there.call("get_next", batch);
      batch.release();
      there.release();
    }
    List<Runnable> jobs = new ArrayList<>();
    try (AsyncDeviceStream stream = new AsyncDeviceStream()) {
      Iterator<DeviceArray> none = List.<DeviceArray>of().iterator();
      AsyncDeviceStreams.send(
          new SchemaBuilder("n").build(), DeviceType.CPU, none, jobs::add, stream.handlerAddress());
      while (!jobs.isEmpty()) {
        jobs.remove(0).run();
      }
    }
    List<String> errors = new ArrayList<>();
    try (Array open = new ArrayBuilder(1).build(null)) {
      errors.add(errorOf(Owner::shutdown));
      open.length();
    }
    Owner.shutdown();
    errors.add(errorOf(() -> new ArrayBuilder(1).build(null)));
    errors.add(errorOf(Owner::shutdown));
    return errors;
  }

  private static String errorOf(Runnable body) {
    try {
      body.run();
      return "no error";
    } catch (IllegalStateException e) {
      return e.getMessage();
    }
  }
}
