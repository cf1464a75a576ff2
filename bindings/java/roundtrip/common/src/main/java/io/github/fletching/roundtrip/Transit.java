// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

/** Data from foreign code handed on under release callbacks in Java. Any thread. */
public final class Transit {
  private final Structs structs;
  private final Nodes.Counts counts = new Nodes.Counts();
  private final Nodes schemas;
  private final Nodes arrays;
  private final Streams streams;

  /** One for each flavor and process: it makes functions that C may call until the end. */
  public Transit(Structs structs) {
    this.structs = structs;
    schemas = new Nodes(structs, structs.schema, counts);
    arrays = new Nodes(structs, structs.array, counts);
    streams = new Streams(structs, this);
  }

  /**
   * Moves a schema and a device array in and fills the other two with the same data. Returns null,
   * or what is wrong; then nothing was moved and nothing filled.
   */
  public String transit(long schema, long array, long outSchema, long outArray) {
    Guard.Outcome outcome =
        Guard.run(
            () -> {
              requireAddresses(schema, array, outSchema, outArray);
              Walk walk = new Walk(structs);
              walk.checkSchema(schema);
              walk.checkArray(schema, structs.arrayOf(array));
              move(schema, array, outSchema, outArray);
            });
    return outcome.errno == 0 ? null : outcome.message();
  }

  /** The same for a device array stream, whose batches {@code observer} sees. */
  String transitStream(long stream, long outStream, Streams.Observer observer) {
    Guard.Outcome outcome =
        Guard.run(
            () -> {
              requireAddresses(stream, outStream);
              streams.reexport(stream, outStream, observer);
            });
    return outcome.errno == 0 ? null : outcome.message();
  }

  /** How many structs were given out, children and dictionaries included. */
  public long exported() {
    return counts.exported.get();
  }

  /** How many of them were released. */
  public long released() {
    return counts.released.get();
  }

  private static void requireAddresses(long... addresses) {
    for (long address : addresses) {
      if (address == 0) {
        throw new TransitException(TransitException.EINVAL, "an address is NULL");
      }
    }
  }

  private void move(long schema, long array, long outSchema, long outArray) {
    Nodes.Node schemaNode = schemas.plan(schema);
    Nodes.Node arrayNode;
    try {
      arrayNode = arrays.plan(structs.arrayOf(array));
    } catch (Throwable e) {
      schemas.discard(schemaNode);
      throw e;
    }
    schemas.adopt(schemaNode, schema, outSchema);
    adopt(arrayNode, array, outArray);
  }

  /** The schema has been checked. */
  void moveSchema(long schema, long out) {
    schemas.adopt(schemas.plan(schema), schema, out);
  }

  /** The array has been checked. */
  void moveDeviceArray(long array, long out) {
    adopt(arrays.plan(structs.arrayOf(array)), array, out);
  }

  private void adopt(Nodes.Node node, long array, long out) {
    Foreign.copy(array, out, structs.deviceArraySize);
    structs.clearReserved(out);
    arrays.adopt(node, structs.arrayOf(array), structs.arrayOf(out));
  }

  Nodes schemas() {
    return schemas;
  }

  Nodes arrays() {
    return arrays;
  }

  Nodes.Counts counts() {
    return counts;
  }
}
