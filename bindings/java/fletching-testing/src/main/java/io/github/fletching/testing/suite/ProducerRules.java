// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.ArrayRules.assertInvalid;
import static io.github.fletching.testing.suite.Raw.assertClosed;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayStream;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.FletchingException;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.suite.Raw.Counted;
import io.github.fletching.testing.suite.Script.Flavor;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

/** The rules about exporting a stream to C, for both kinds of streams. */
public abstract class ProducerRules {
  private static final int EIO = 5;
  private static final int ENOMEM = 12;

  private final List<String> closed = new ArrayList<>();

  /** Makes a batch of each length, and throws each exception. */
  private static final class Batches<B> implements Iterator<B>, AutoCloseable {
    private final Iterator<?> lengths;
    private final Function<Integer, B> make;
    private final List<String> log;

    Batches(List<?> lengths, Function<Integer, B> make, List<String> log) {
      this.lengths = lengths.iterator();
      this.make = make;
      this.log = log;
    }

    @Override
    public boolean hasNext() {
      return lengths.hasNext();
    }

    @Override
    public B next() {
      Object next = lengths.next();
      if (next instanceof Throwable) {
        throw Batches.<RuntimeException>sneaky((Throwable) next);
      }
      return make.apply((Integer) next);
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> RuntimeException sneaky(Throwable thrown) throws T {
      throw (T) thrown;
    }

    @Override
    public void close() {
      log.add("iterator");
    }
  }

  /** A stream in memory of C. The list has lengths of batches, and exceptions to throw. */
  static Raw exported(Flavor flavor, List<?> lengths, List<String> log) {
    Schema schema = new SchemaBuilder("i").name("values").build();
    schema.attach(new Counted(log, "schema"));
    Counted batch = new Counted(log, "batch");
    Raw raw = flavor.room();
    if (flavor == Flavor.PLAIN) {
      Function<Integer, Array> make = length -> new ArrayBuilder(length).buffers(0, 0).build(batch);
      ArrayStream.of(schema, new Batches<>(lengths, make, log)).moveTo(raw.address());
    } else {
      Function<Integer, DeviceArray> make =
          length -> new ArrayBuilder(length).buffers(0, 0).buildOn(DeviceType.CUDA, 0, 0, batch);
      DeviceArrayStream.of(schema, DeviceType.CUDA, new Batches<>(lengths, make, log))
          .moveTo(raw.address());
    }
    return raw;
  }

  private Raw exported(Flavor flavor, Object... lengths) {
    return exported(flavor, List.of(lengths), closed);
  }

  private static Raw next(Raw stream, int code) {
    Raw out = Raw.deviceArray(); // room for either
    assertEquals(code, stream.call("get_next", out));
    return out;
  }

  private static Raw schemaOf(Raw stream) {
    Raw out = Raw.schema();
    assertEquals(0, stream.call("get_schema", out));
    return out;
  }

  @BothStreams(also = "ruleDeviceStreamResultEndIsReleasedArray")
  void ruleStreamResultEndIsReleasedArray(Flavor flavor) {
    Raw stream = exported(flavor, 1, 2);
    for (int length = 1; length <= 2; length++) {
      Raw batch = next(stream, 0);
      assertEquals(length, batch.get("length"));
      batch.release();
    }
    for (int i = 0; i < 3; i++) {
      assertTrue(next(stream, 0).isReleased());
    }
    stream.release();
    assertClosed(closed, "batch", "batch", "iterator", "schema");
  }

  @BothStreams(also = "ruleDeviceStreamResultOutlivesStream")
  void ruleStreamResultOutlivesStream(Flavor flavor) {
    Raw stream = exported(flavor, 1, 2);
    Raw schema = schemaOf(stream);
    Raw batch = next(stream, 0);
    stream.release();
    assertClosed(closed, "iterator");
    assertEquals("values", schema.text("name"));
    assertEquals(1, batch.get("length"));
    schema.release();
    assertClosed(closed, "schema");
    batch.release();
    assertClosed(closed, "batch");
  }

  @BothStreams(also = "ruleDeviceStreamResultSchemaConstant")
  void ruleStreamResultSchemaConstant(Flavor flavor) {
    Raw stream = exported(flavor, 1);
    for (int i = 0; i < 3; i++) {
      Raw schema = schemaOf(stream);
      assertEquals("i", schema.text("format"));
      assertEquals("values", schema.text("name"));
      schema.release();
      Raw batch = next(stream, 0);
      assertEquals(i > 0, batch.isReleased());
      if (i == 0) {
        batch.release();
      }
    }
    stream.release();
    assertClosed(closed, "batch", "iterator", "schema");
  }

  @BothStreams(also = "ruleDeviceStreamErrnoCodes")
  void ruleStreamErrnoCodes(Flavor flavor) {
    Map<Throwable, Integer> codes =
        Map.of(
            new FletchingException(28, "full"), 28,
            new FletchingException(-3, "no errno value"), EIO,
            new FletchingException(0, "success"), EIO,
            new IllegalStateException("no code"), EIO,
            new StackOverflowError("deep"), EIO,
            new FletchingException(1, "not permitted"), 1,
            new OutOfMemoryError("on purpose"), ENOMEM);
    codes.forEach(
        (thrown, expected) -> {
          Raw stream = exported(flavor, thrown);
          for (int i = 0; i < 2; i++) {
            assertTrue(next(stream, expected).isReleased());
          }
          stream.release();
        });
  }

  @BothStreams(also = "ruleDeviceStreamErrorText")
  void ruleStreamErrorText(Flavor flavor) {
    Map<String, String> texts =
        Map.of("caf\u00e9", "caf\u00e9", "a\0b", "a\\x00b", "\ud800x", "?x", "", "errno 28");
    texts.forEach(
        (message, expected) -> {
          Raw stream = exported(flavor, new FletchingException(28, message));
          assertEquals(0, stream.callText());
          next(stream, 28);
          assertEquals(expected, stream.lastError());
          stream.release();
        });
  }

  @BothStreams(also = "ruleDeviceStreamErrorTextLifetime")
  void ruleStreamErrorTextLifetime(Flavor flavor) {
    Raw stream = exported(flavor, new FletchingException(28, "the text"));
    next(stream, 28);
    long first = stream.callText();
    Raw moved = stream.move(flavor.room());
    stream.fill(0x55);
    assertEquals(first, moved.callText());
    assertEquals("the text", moved.lastError());
    // get_schema works still, and has no text; get_next fails again with the same one.
    schemaOf(moved).release();
    assertEquals(0, moved.callText());
    next(moved, 28);
    assertEquals("the text", moved.lastError());
    moved.release();
  }

  /** After a move of the struct; a batch that was not read is not built. */
  @BothStreams(also = "ruleDeviceStreamReleaseLikeArray")
  void ruleStreamReleaseLikeArray(Flavor flavor) {
    Raw stream = exported(flavor, 1, 2);
    next(stream, 0).release();
    Raw moved = stream.move(flavor.room());
    stream.fill(0x55);
    assertClosed(closed, "batch");
    moved.release();
    assertTrue(moved.isReleased());
    assertClosed(closed, "iterator", "schema");
  }

  // --- Device types

  @Test
  void ruleDeviceStreamDeviceTypeSet() {
    for (DeviceType type : List.of(DeviceType.CUDA, DeviceType.of(9999))) {
      Raw raw = Raw.deviceStream();
      DeviceArrayStream.of(new SchemaBuilder("i").build(), type, List.<DeviceArray>of().iterator())
          .moveTo(raw.address());
      assertEquals(type.value(), raw.getInt("device_type"));
      raw.release();
    }
    try (Schema schema = new SchemaBuilder("i").build()) {
      assertInvalid(
          "stream: device_type: 0: expected the device type of the batches (rule"
              + " device-stream.device-type-set)",
          () -> DeviceArrayStream.of(schema, DeviceType.of(0), List.<DeviceArray>of().iterator()));
      assertFalse(schema.isReleased());
    }
  }

  @Test
  void ruleDeviceStreamStreamPerDeviceType() {
    List<DeviceArray> batches = new ArrayList<>();
    for (DeviceType type : List.of(DeviceType.CUDA, DeviceType.ROCM)) {
      batches.add(
          new ArrayBuilder(1).buffers(0, 0).buildOn(type, 0, 0, new Counted(closed, type.name())));
    }
    Raw stream = Raw.deviceStream();
    DeviceArrayStream.of(new SchemaBuilder("i").build(), DeviceType.CUDA, batches.iterator())
        .moveTo(stream.address());
    Raw first = next(stream, 0);
    for (int i = 0; i < 2; i++) {
      assertTrue(next(stream, 22).isReleased());
    }
    assertClosed(closed, "rocm");
    first.release();
    stream.release();
    assertClosed(closed, "cuda");
  }
}
