// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.bench;

import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.c.ArrowArray;
import org.apache.arrow.c.Data;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * The cases as an arrow-java user writes them. arrow-java has no device array, so the other fields
 * are omitted. Its vectors exist beforehand, so only the handoff is measured.
 */
@State(Scope.Thread)
public class ArrowJava {
  private final BufferAllocator allocator = new RootAllocator();
  private final BigIntVector column = column();
  private final VectorSchemaRoot batch = batch();
  private final ArrowArray raw = ArrowArray.wrap(Peer.raw());

  @Setup
  public void setUp() throws Throwable {
    Peer.setUp(Peer.ROWS);
  }

  private BigIntVector column() {
    BigIntVector vector = new BigIntVector("", allocator);
    vector.allocateNew(Peer.ROWS);
    for (int i = 0; i < Peer.ROWS; i++) {
      vector.set(i, i);
    }
    vector.setValueCount(Peer.ROWS);
    return vector;
  }

  private VectorSchemaRoot batch() {
    List<FieldVector> columns = new ArrayList<>();
    for (int i = 0; i < Peer.COLUMNS; i++) {
      columns.add(column());
    }
    return new VectorSchemaRoot(columns);
  }

  @Benchmark
  public void take() {
    BigIntVector vector = new BigIntVector("", allocator);
    Data.importIntoVector(allocator, ArrowArray.wrap(Peer.leaf()), vector, null);
    vector.close();
  }

  @Benchmark
  public void give() throws Throwable {
    Data.exportVector(allocator, column, null, raw);
    Peer.consume(Peer.raw());
  }

  @Benchmark
  public void handoff() throws Throwable {
    Data.exportVectorSchemaRoot(allocator, batch, null, raw);
    Peer.consume(Peer.raw());
  }
}
