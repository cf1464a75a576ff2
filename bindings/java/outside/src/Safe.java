// SPDX-License-Identifier: Apache-2.0
package outside;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;

/** Moves an array with the engine that is on the path. */
final class Safe {
  private Safe() {}

  public static void main(String[] arguments) {
    AutoCloseable object = () -> System.out.println("released");
    try (Array array = new ArrayBuilder(3).build(object);
        Array moved = Array.wrap(array.address())) {
      System.out.println(moved.length() + " values");
    }
  }
}
