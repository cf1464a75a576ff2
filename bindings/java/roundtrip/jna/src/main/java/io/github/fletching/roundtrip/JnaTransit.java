// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

/** What a peer that has this JVM in its process calls. Arguments are addresses. Any thread. */
public final class JnaTransit {
  static final Structs STRUCTS = new JnaStructs();
  static final Transit TRANSIT = new Transit(STRUCTS);

  private JnaTransit() {}

  /**
   * Moves a schema and a device array in and fills the other two with the same data, under release
   * callbacks in Java. Returns null, or what is wrong; then nothing was moved and nothing filled.
   */
  public static String transit(long schema, long array, long outSchema, long outArray) {
    return TRANSIT.transit(schema, array, outSchema, outArray);
  }

  /** How many structs were given out, children and dictionaries included. */
  public static long exported() {
    return TRANSIT.exported();
  }

  /** How many of them were released. */
  public static long released() {
    return TRANSIT.released();
  }

  /** Takes every case of the reference producer through this flavor and back. */
  public static void main(String[] arguments) {
    System.exit(Program.run(STRUCTS, TRANSIT));
  }
}
