// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.Owner;

/** A program whose arrays are released during shutdown by C and by Java. */
public final class ReleaseDuringShutdown {
  private ReleaseDuringShutdown() {}

  /** Ends with a hook that prints the outcome. */
  public static void main(String[] arguments) {
    array("unused").close();
    Runtime.getRuntime().addShutdownHook(new Thread(ReleaseDuringShutdown::releaseLate));
  }

  private static Array array(String name) {
    AutoCloseable object = () -> System.out.print(", closed in " + name);
    return new ArrayBuilder(1).build(object);
  }

  private static void releaseLate() {
    while (Owner.lateReleases() < 2) { // the hooks start in any order
      Raw raw = Raw.array();
      array("C").moveTo(raw.address());
      raw.release();
      if (!raw.isReleased()) {
        System.out.print("not marked");
      }
    }
    System.out.print("\nlate " + Owner.lateReleases());
    array("Java").close();
    System.out.println();
  }
}
