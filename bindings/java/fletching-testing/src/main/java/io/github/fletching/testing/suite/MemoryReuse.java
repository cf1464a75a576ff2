// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayStream;
import io.github.fletching.DeviceArray;
import io.github.fletching.FletchingException;
import io.github.fletching.Owner;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.Shared;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;
import io.github.fletching.testing.CapturedLog;
import io.github.fletching.testing.CountingEngine;
import io.github.fletching.testing.suite.Script.Flavor;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** A program on the counting engine: the memory that structs take, and its reuse. */
public final class MemoryReuse {
  private static final int ROUNDS = 200; // a leak of slots would fill three slabs
  private static final int SLAB = 64; // owners in a slab
  private static final long MOST_BUFFERS = Integer.MAX_VALUE;

  private MemoryReuse() {}

  /** Prints the report. */
  public static void main(String[] arguments) {
    System.out.println(report());
  }

  static String report() {
    return String.format(
        "not used again %s, owners in a slab %d, forgotten %b, reserve %d, bytes %s,"
            + " at the limit %s",
        notUsedAgain(),
        ownersInASlab(),
        areForgottenOnesUsedAgain(),
        slabsOfClosedOwners(),
        bytes(),
        atTheLimit());
  }

  /** Returns the uses that grow memory with each repetition even though they release everything. */
  private static List<String> notUsedAgain() {
    Map<String, Runnable> uses = new LinkedHashMap<>();
    uses.put("close", () -> leaf().close());
    uses.put("several", MemoryReuse::several);
    uses.put("move", () -> Raw.exported(leaf()).give(Array::wrap).close());
    uses.put("devices", () -> leaf().toDevice().toHost().close());
    uses.put("share", () -> leaf().share().close());
    uses.put("children", MemoryReuse::children);
    uses.put("end", () -> read(ArrayStream.of(schema(), Collections.emptyIterator())));
    uses.put("error", () -> fail(script -> script.codes.put(1, 28)));
    uses.put("schema", () -> fail(script -> script.hasSchema = false));
    List<Owner> open = new ArrayList<>(); // uses up most free slots
    addUntilMemoryIsAllocated(open, MemoryReuse::leaf);
    addUntilMemoryIsAllocated(open, () -> leaf().toDevice());
    List<String> growing = new ArrayList<>();
    uses.forEach(
        (name, use) -> {
          use.run(); // slots persist from the first use
          int before = CountingEngine.live();
          for (int i = 0; i < ROUNDS; i++) {
            use.run();
          }
          if (CountingEngine.live() > before) {
            growing.add(name);
          }
        });
    open.forEach(Owner::close);
    return growing;
  }

  private static Array leaf() {
    return new ArrayBuilder(0).build(null);
  }

  private static Schema schema() {
    return new SchemaBuilder("n").build();
  }

  private static void several() {
    List<Array> open = List.of(leaf(), leaf(), leaf());
    open.forEach(Array::close);
  }

  private static void children() {
    try (DeviceArray parent = Raw.batch(2).buildOn(DeviceType.CUDA, 0, 0x1000, null);
        Shared<DeviceArray> shared = parent.takeChild(0).share();
        DeviceArray view = shared.view()) {
      view.address();
    }
  }

  private static void read(ArrayStream stream) {
    try (stream) {
      stream.schema().close();
      while (stream.hasNext()) {
        stream.next().close();
      }
    }
  }

  private static void fail(Consumer<Script> change) {
    Script script = new Script(Flavor.PLAIN, 0);
    change.accept(script);
    try {
      read((ArrayStream) script.open());
      throw new AssertionError("no error");
    } catch (FletchingException e) {
      script.assertEnded();
    }
  }

  /** Returns the number of owners per allocation. */
  private static int ownersInASlab() {
    List<Owner> open = new ArrayList<>();
    addUntilMemoryIsAllocated(open, MemoryReuse::leaf);
    int first = open.size();
    addUntilMemoryIsAllocated(open, MemoryReuse::leaf);
    open.forEach(Owner::close);
    return open.size() - first;
  }

  private static void addUntilMemoryIsAllocated(List<Owner> open, Supplier<Owner> maker) {
    int before = CountingEngine.live();
    while (CountingEngine.live() == before) {
      open.add(maker.get());
    }
  }

  /**
   * Returns how many slabs are kept for a kind after many owners were closed: a reserve of 16, and
   * the slab of the spare slot. Counts the freed slabs, because other tests may have left some.
   */
  private static int slabsOfClosedOwners() {
    int owners = 160 * SLAB;
    List<Owner> open = new ArrayList<>();
    for (int i = 0; i < owners; i++) {
      open.add(schema()); // each has a block of strings
    }
    int most = CountingEngine.live();
    open.forEach(Owner::close);
    return 160 - (most - CountingEngine.live() - owners);
  }

  /** Returns whether slots are reused when several slabs of owners are collected in sequence. */
  private static boolean areForgottenOnesUsedAgain() {
    CapturedLog log = new CapturedLog();
    List<Owner> open = new ArrayList<>();
    addUntilMemoryIsAllocated(open, MemoryReuse::leaf); // uses up most free slots
    int before = CountingEngine.live();
    int exported = Handles.count();
    for (int round = 0; round < 10; round++) {
      for (int i = 0; i < 64; i++) {
        leaf().length();
      }
      while (Handles.count() > exported) {
        System.gc();
      }
    }
    log.close();
    int more = CountingEngine.live() - before;
    open.forEach(Owner::close);
    return more < 4;
  }

  /** Returns the bytes below an array and below a schema: structs, pointers, and strings. */
  private static List<Long> bytes() {
    List<Long> sizes = new ArrayList<>();
    ArrayBuilder column = new ArrayBuilder(1).buffers(0, 0).dictionary(new ArrayBuilder(1));
    ArrayBuilder other = new ArrayBuilder(1).buffers(0, 0, 0).child(new ArrayBuilder(1));
    ArrayBuilder table = new ArrayBuilder(1).buffers(0).child(column).child(other);
    SchemaBuilder child = new SchemaBuilder("1234567").name("12345678").dictionary(leafSchema());
    for (int i = 0; i < 2; i++) { // slots persist from the first use
      sizes.clear();
      long before = CountingEngine.bytes();
      try (Array array = table.build(null)) {
        sizes.add(CountingEngine.bytes() - before + (int) array.offset());
      }
      try (Schema schema = new SchemaBuilder("+s").child(child).child(leafSchema()).build()) {
        sizes.add(CountingEngine.bytes() - before + (int) schema.flags());
      }
    }
    return sizes;
  }

  private static SchemaBuilder leafSchema() {
    return new SchemaBuilder("i");
  }

  /** Returns the error for the maximum number of buffers, whose allocation fails. */
  private static String atTheLimit() {
    ArrayBuilder many = new ArrayBuilder(0).buffers(new long[1 << 20]);
    ArrayBuilder table = new ArrayBuilder(0);
    int structs = (int) (MOST_BUFFERS >> 20);
    for (int i = 0; i < structs; i++) {
      table.child(many);
    }
    table.child(new ArrayBuilder(0).buffers(new long[(int) MOST_BUFFERS & ((1 << 20) - 1)]));
    CountingEngine.refuse((structs + 1) * 80L + 8 * (structs + 1 + MOST_BUFFERS));
    FletchingException error = Releases.errorOf(() -> table.build(null).close());
    CountingEngine.refuse(-1);
    return error.getMessage();
  }
}
