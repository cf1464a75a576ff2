// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Raw.assertClosed;
import static io.github.fletching.testing.suite.Releases.errorOf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayStream;
import io.github.fletching.BatchStream;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.FletchingException;
import io.github.fletching.Owner;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.SchemaView;
import io.github.fletching.Shared;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.suite.Peer.Case;
import io.github.fletching.testing.suite.Raw.Counted;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Every case of the hostile peer that has no thread of its own. */
public abstract class HostileSuite {
  private final List<String> closed = new CopyOnWriteArrayList<>();

  static void check(Case c, FletchingException error) {
    if (c.outcome == Peer.ACCEPTED) {
      assertNull(error, c.name);
    } else if (c.outcome == Peer.REFUSED) {
      assertNotNull(error, c.name);
      assertFalse(error.getMessage().isEmpty(), c.name);
    } else if (c.outcome == Peer.REPORTED) {
      assertNotNull(error, c.name);
      assertEquals(c.code, error.errno(), c.name);
    }
    if (error != null) {
      String text = error.getMessage();
      assertTrue(text.length() <= 64 * 1024, c.name);
      assertTrue(
          text.chars().noneMatch(x -> (x < ' ' && x != '\n' && x != '\t') || x == 0x7f), c.name);
    }
  }

  private static void read(SchemaView view) {
    view.format();
    view.name();
    view.metadata();
    for (int i = 0; i < view.childCount(); i++) {
      read(view.child(i));
    }
  }

  private static Raw schema(Case c) {
    Raw raw = Raw.schema();
    Peer.call(c.name, m -> Peer.C.FletchingHostileExportSchema(c.name, raw.address(), m));
    return raw;
  }

  @Test
  void schemasAreReadOrRefused() {
    List<String> refused = new ArrayList<>();
    for (Case c : Peer.cases(Peer.SCHEMA)) {
      FletchingException error =
          errorOf(
              () -> {
                try (Schema schema = Schema.wrap(schema(c).address())) {
                  errorOf(() -> schema.view().toBuilder().build().close());
                  try (Shared<Schema> shared = schema.share();
                      Schema view = shared.view()) {
                    read(view.view());
                  }
                }
              });
      if (error != null) {
        refused.add(c.name.replace("schema.", ""));
      }
      if (c.outcome == Peer.ACCEPTED) {
        check(c, error);
      }
      Peer.finish(c.name);
    }
    assertEquals( // the other cases are about formats, which are not read
        List.of(
            "released",
            "format-null",
            "metadata-negative-count",
            "metadata-negative-length",
            "deep",
            "children-negative",
            "children-huge",
            "children-null",
            "child-null",
            "child-released",
            "children-of-primitive",
            "cycle"),
        refused);
  }

  private static DeviceArray array(Case c) {
    Raw schema = Raw.schema();
    Raw raw = Raw.deviceArray();
    Peer.call(
        c.name,
        m -> Peer.C.FletchingHostileExportArray(c.name, schema.address(), raw.address(), m));
    Schema.wrap(schema.address()).close();
    return DeviceArray.wrap(raw.address());
  }

  @Test
  void arraysAreMovedAndReleasedUnread() {
    for (Case c : Peer.cases(Peer.ARRAY)) {
      FletchingException error =
          errorOf(
              () -> {
                Raw raw = Raw.deviceArray();
                array(c).moveTo(raw.address());
                DeviceArray.wrap(raw.address()).close();
              });
      assertEquals(c.name.equals("array.released"), error != null, c.name);
      Peer.finish(c.name);
    }
  }

  @Test
  void arraysAreSharedAndTakenApartOrRefused() {
    for (Case c : Peer.cases(Peer.ARRAY)) {
      if (c.name.equals("array.released")) {
        continue;
      }
      int columns = 0;
      try (Shared<DeviceArray> shared = array(c).share()) {
        for (int index : new int[] {-1, 0, 1, Integer.MAX_VALUE}) {
          columns += errorOf(() -> shared.column(index).close()) == null ? 1 : 0;
        }
        errorOf(() -> shared.view().close());
      }
      List<Owner> taken = new ArrayList<>();
      try (DeviceArray parent = array(c)) {
        parent.length();
        parent.buffers();
        for (int index : new int[] {-1, 1, 1, 0}) {
          errorOf(() -> taken.add(parent.takeChild(index)));
        }
        errorOf(() -> parent.takeDictionary().close());
      }
      if (c.name.equals("array.good-children")) {
        assertEquals(2, columns);
        assertEquals(2, taken.size());
      }
      taken.forEach(Owner::close);
      Peer.finish(c.name);
    }
  }

  private DeviceArray table() {
    ArrayBuilder table = new ArrayBuilder(3).buffers(0);
    table.child(new ArrayBuilder(3).buffers(0, 0)).child(new ArrayBuilder(3).buffers(0, 0));
    return table.buildOn(DeviceType.CPU, -1, 0, new Counted(closed, "dropped"));
  }

  private void consume(Case c, DeviceArray array, String... names) {
    Raw raw = Raw.deviceArray();
    array.moveTo(raw.address());
    Peer.call(c.name, m -> Peer.C.FletchingHostileConsumeArray(c.name, raw.address(), m));
    Peer.finish(c.name);
    assertClosed(closed, names);
  }

  @Test
  void everyConsumerReleasesArraysOnce() {
    for (Case c : Peer.cases(Peer.ARRAY_CONSUMER)) {
      consume(c, table(), "dropped");
      Shared<DeviceArray> shared = table().share();
      consume(c, shared.view());
      shared.close();
      assertClosed(closed, "dropped");
      DeviceArray attached = table();
      attached.attach(new Counted(closed, "attached"));
      Raw raw = Raw.deviceArray();
      attached.moveTo(raw.address());
      Peer.call(c.name, m -> Peer.C.FletchingHostileConsumeArray(c.name, raw.address(), m));
      Peer.finish(c.name);
      closed.sort(null); // a child that was moved out keeps the data, not what is attached
      assertClosed(closed, "attached", "dropped");
    }
  }

  // --- Streams

  /** Reads all; the batches are kept until the stream is released. */
  private static int readAll(BatchStream<? extends Owner> stream) {
    List<Owner> kept = new ArrayList<>();
    try (stream) {
      stream.schema().close();
      FletchingException error = errorOf(() -> stream.forEach(kept::add));
      if (error != null) {
        assertThrows(FletchingException.class, stream::hasNext);
        throw error;
      }
      return kept.size();
    } finally {
      kept.forEach(Owner::close);
    }
  }

  private static DeviceArrayStream open(Case c) {
    Raw raw = Raw.deviceStream();
    Peer.call(c.name, m -> Peer.C.FletchingHostileExportDeviceStream(c.name, raw.address(), m));
    return DeviceArrayStream.wrap(raw.address());
  }

  private static ArrayStream openHost(Case c) {
    Raw raw = Raw.stream();
    Peer.call(c.name, m -> Peer.C.FletchingHostileExportStream(c.name, raw.address(), m));
    return ArrayStream.wrap(raw.address());
  }

  private static void play(Case c, Supplier<BatchStream<? extends Owner>> stream) {
    check(
        c,
        errorOf(
            () -> {
              int batches = readAll(stream.get());
              assertEquals(c.name.equals("stream.empty") ? 0 : 3, batches, c.name);
            }));
  }

  private static void playDevice(Case c) {
    play(c, () -> open(c));
    if (c.name.equals("stream.released")) {
      return;
    }
    open(c).close();
    FletchingException strict = errorOf(() -> readAll(open(c).strict()));
    if (c.outcome == Peer.TOLERATED) {
      assertTrue(strict != null && strict.getMessage().contains("(rule "), c.name);
    }
    // A stream of Java over the peer's stream has the same result.
    DeviceArrayStream inner = open(c);
    if (inner.deviceType().value() != 0 && !c.name.contains("schema")) {
      Raw raw = Raw.deviceStream();
      DeviceArrayStream.of(new SchemaBuilder("i").build(), inner.deviceType(), inner)
          .moveTo(raw.address());
      play(c, () -> DeviceArrayStream.wrap(raw.address()));
      assertTrue(inner.isReleased());
    }
    inner.close();
  }

  @Test
  void streamsAreReadOrRefused() {
    for (Case c : Peer.cases(Peer.STREAM)) {
      playDevice(c);
      play(c, () -> openHost(c));
      Peer.finish(c.name);
    }
    for (Case c : Peer.cases(Peer.DEVICE_STREAM)) {
      playDevice(c);
      Peer.finish(c.name);
    }
  }

  @Test
  void everyConsumerReleasesStreams() {
    for (Case c : Peer.cases(Peer.STREAM_CONSUMER)) {
      Raw host = Raw.stream();
      Raw device = Raw.deviceStream();
      Supplier<Array> leaf = () -> new ArrayBuilder(3).buffers(0, 0).build(null);
      ArrayStream.of(
              new SchemaBuilder("i").build(),
              IntStream.range(0, 3).mapToObj(i -> leaf.get()).iterator())
          .moveTo(host.address());
      DeviceArrayStream.of(
              new SchemaBuilder("i").build(),
              DeviceType.CPU,
              IntStream.range(0, 3).mapToObj(i -> leaf.get().toDevice()).iterator())
          .moveTo(device.address());
      Peer.call(c.name, m -> Peer.C.FletchingHostileConsumeStream(c.name, 3, host.address(), m));
      Peer.call(
          c.name, m -> Peer.C.FletchingHostileConsumeDeviceStream(c.name, 3, device.address(), m));
      Peer.finish(c.name);
    }
  }
}
