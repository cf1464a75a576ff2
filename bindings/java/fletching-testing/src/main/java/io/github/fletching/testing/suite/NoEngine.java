// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.AsyncDeviceStream;
import io.github.fletching.Owner;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.Waiter;
import io.github.fletching.Waiters;
import io.github.fletching.abi.DeviceType;
import java.util.Arrays;

/** A program in a JVM without an engine. */
public final class NoEngine {
  private NoEngine() {}

  /** Uses the library and prints the exceptions. */
  public static void main(String[] arguments) {
    Waiters.register(DeviceType.EXT_DEV, new Waiter() {});
    for (Runnable use :
        Arrays.<Runnable>asList(
            () -> Array.wrap(4096),
            () -> new ArrayBuilder(1).build(null),
            () -> new SchemaBuilder("i").build(),
            () -> new AsyncDeviceStream().handlerAddress())) {
      try {
        use.run();
        System.out.println("no exception");
      } catch (Throwable thrown) {
        System.out.println(thrown + " caused by " + thrown.getCause().getCause());
      }
    }
    System.out.println(Owner.leaks() + " leaks");
  }
}
