// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Raw.assertClosed;
import static io.github.fletching.testing.suite.Raw.assertError;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
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
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.function.Executable;

/** Streams in both directions. */
@ExtendWith(LeakCheck.class)
class StreamsTest {
  private final List<String> closed = new CopyOnWriteArrayList<>();

  private static Schema schema() {
    return new SchemaBuilder("i").build();
  }

  private Array batch(int length) {
    return new ArrayBuilder(length).buffers(0, 0).build(new Counted(closed, "batch " + length));
  }

  /** Exports and imports a stream, so that every callback is called through C. */
  private ArrayStream through(Iterator<Array> batches) {
    Raw raw = Raw.stream();
    ArrayStream.of(schema(), batches).moveTo(raw.address());
    return raw.give(ArrayStream::wrap);
  }

  private ArrayStream three() {
    return through(IntStream.range(1, 4).mapToObj(this::batch).iterator());
  }

  @Test
  void batchesArriveInOrder() {
    try (ArrayStream stream = three()) {
      try (Schema schema = stream.schema();
          Schema again = stream.schema()) {
        assertEquals("i", schema.format());
        assertEquals("i", again.format());
      }
      long expected = 1;
      for (Array batch : stream) {
        try (batch) {
          assertEquals(expected++, batch.length());
        }
      }
      assertEquals(4, expected);
      assertFalse(stream.hasNext());
      assertThrows(NoSuchElementException.class, stream::next);
    }
    assertClosed(closed, "batch 1", "batch 2", "batch 3");
  }

  @Test
  void secondLoopContinuesFirst() {
    List<Long> lengths = new ArrayList<>();
    try (ArrayStream stream = three()) {
      for (Array batch : stream) {
        lengths.add(batch.length());
        batch.close();
        break;
      }
      try (Stream<Array> rest = stream.stream()) {
        lengths.addAll(
            rest.map(
                    batch -> {
                      try (batch) {
                        return batch.length();
                      }
                    })
                .collect(Collectors.toList()));
      }
      assertTrue(stream.isReleased());
    }
    assertEquals(List.of(1L, 2L, 3L), lengths);
  }

  @Test
  void movedOutStreamIsNotCalled() {
    ArrayStream stream = three();
    Raw there = Raw.streamAt(stream.address()).move(Raw.stream());
    assertTrue(stream.isReleased());
    assertThrows(IllegalStateException.class, stream::hasNext);
    assertThrows(IllegalStateException.class, stream::schema);
    assertThrows(IllegalStateException.class, () -> stream.moveTo(Raw.stream().address()));
    stream.close();
    try (ArrayStream moved = there.give(ArrayStream::wrap)) {
      moved.next().close();
    }
    assertClosed(closed, "batch 1");
  }

  @Test
  void closeReleasesBatchReadAhead() {
    ArrayStream stream = three();
    assertTrue(stream.hasNext());
    assertTrue(stream.hasNext());
    assertEquals(
        "moveTo: batch read ahead: expected a call of next before",
        assertThrows(IllegalStateException.class, () -> stream.moveTo(Raw.stream().address()))
            .getMessage());
    stream.close();
    assertClosed(closed, "batch 1");
    for (Executable use : List.<Executable>of(stream::hasNext, stream::schema)) {
      assertEquals(
          "stream: closed or moved: expected a live struct",
          assertThrows(IllegalStateException.class, use).getMessage());
    }
  }

  private static Iterator<Array> iterator(IntFunction<Array> next) {
    return IntStream.iterate(1, i -> i + 1).mapToObj(next).iterator();
  }

  private static Iterator<Array> throwing(Throwable thrown) {
    return iterator(
        i -> {
          throw StreamsTest.<RuntimeException>sneaky(thrown);
        });
  }

  @SuppressWarnings("unchecked")
  private static <T extends Throwable> RuntimeException sneaky(Throwable thrown) throws T {
    throw (T) thrown;
  }

  @Test
  void errorKeepsErrnoAndEndsStream() {
    List<Integer> calls = new ArrayList<>();
    ArrayStream stream =
        through(
            iterator(
                i -> {
                  calls.add(i);
                  if (i < 2) {
                    return batch(i);
                  }
                  throw new FletchingException(28, "disk\0full: caf\u00e9\u0007\ud800");
                }));
    stream.next().close();
    for (int i = 0; i < 2; i++) {
      assertError(28, "disk\\x00full: caf\u00e9\\x07?", stream::hasNext);
      assertError(28, "disk\\x00full: caf\u00e9\\x07?", stream::schema);
    }
    assertEquals(List.of(1, 2), calls);
    stream.close();
  }

  /** A text longer than 4096 bytes is cut between two characters. */
  @Test
  void longErrorTextIsTruncated() {
    String almost = "x".repeat(4095);
    Map.of("x".repeat(4097), "x".repeat(4096) + "...", almost + "\u00e9!", almost + "...")
        .forEach(
            (text, expected) -> {
              ArrayStream stream =
                  through(
                      iterator(
                          i -> {
                            throw new FletchingException(5, text);
                          }));
              assertError(5, expected, stream::next);
              stream.close();
            });
  }

  @Test
  void iteratorExceptionIsEio() {
    Map<Throwable, String> texts =
        Map.of(
            new StackOverflowError("deep"), "java.lang.StackOverflowError: deep",
            new UnreadableException(), "no message");
    texts.forEach((thrown, text) -> assertThrown(5, text, thrown));
    try (ArrayStream stream = through(iterator(i -> null))) {
      assertError(22, "get_next: batch is null: expected a live batch", stream::next);
    }
    Array released = batch(1);
    released.close();
    try (ArrayStream stream = through(iterator(i -> released))) {
      assertError(
          22,
          "get_next: batch is released: expected a live batch, because a released one is the end",
          stream::next);
    }
  }

  private void assertThrown(int errno, String text, Throwable thrown) {
    try (ArrayStream stream = through(throwing(thrown))) {
      assertError(errno, text, stream::next);
    }
  }

  @Test
  void exceptionKindSelectsErrno() {
    int enosys = System.getProperty("os.name").startsWith("Mac") ? 78 : 38;
    assertThrown(
        enosys,
        "java.lang.UnsupportedOperationException: later",
        new UnsupportedOperationException("later"));
    assertThrown(22, "java.lang.NumberFormatException: x", new NumberFormatException("x"));
    assertThrown(12, "java.lang.OutOfMemoryError: heap", new OutOfMemoryError("heap"));
  }

  private static ArrayBuilder rows(int buffers) {
    return new ArrayBuilder(1).buffers(new long[buffers]);
  }

  @Test
  void nextRejectsViewsWithoutSizesBuffer() {
    SchemaBuilder views = new SchemaBuilder("vu");
    List<Array> batches = List.of(rows(3).build(null), rows(7).build(null), rows(2).build(null));
    try (ArrayStream stream = ArrayStream.of(views.build(), batches.iterator())) {
      stream.next().close();
      stream.next().close();
      assertError(22, "get_next: batch 2: expected at least 3 buffers, got 2", stream::next);
    }
  }

  /** Each batch must match the schema's buffers, children and dictionaries. */
  @Test
  void nextRejectsBatchOfOtherShape() {
    SchemaBuilder item = new SchemaBuilder("g").name("items");
    SchemaBuilder list = new SchemaBuilder("+l").name("a").child(item);
    SchemaBuilder text = new SchemaBuilder("c").name("b").dictionary(new SchemaBuilder("u"));
    SchemaBuilder table = new SchemaBuilder("+s").child(list).child(text);
    ArrayBuilder items = rows(2);
    ArrayBuilder encoded = rows(2).dictionary(rows(3));
    ArrayBuilder lists = rows(2).child(items);
    Map<ArrayBuilder, String> refused =
        Map.of(
            rows(1).child(lists), "expected 2 children, got 1",
            rows(1).child(rows(2)).child(encoded), "field \"a\": expected 1 children, got 0",
            rows(1).child(rows(2).child(lists)).child(encoded),
                "field \"a.items\": expected 0 children, got 1",
            rows(1).child(lists).child(items), "field \"b\": expected a dictionary, got none",
            rows(1).child(lists).child(rows(2).dictionary(encoded)),
                "field \"b.dictionary\": expected no dictionary, got one",
            rows(2).child(lists).child(encoded), "expected 1 buffers, got 2",
            rows(1).child(rows(2).child(rows(3))).child(encoded),
                "field \"a.items\": expected 2 buffers, got 3",
            rows(1).child(lists).child(rows(2).dictionary(rows(2))),
                "field \"b.dictionary\": expected 3 buffers, got 2");
    refused.forEach(
        (builder, problem) -> {
          Array right = rows(1).nullCount(-1).child(lists).child(encoded).build(null);
          List<Array> batches = List.of(right, builder.build(null));
          try (ArrayStream stream = ArrayStream.of(table.build(), batches.iterator())) {
            stream.next().close();
            assertError(22, "get_next: batch 1: " + problem, stream::next);
          }
        });
    Array taken = rows(1).child(lists).child(encoded).build(null);
    taken.takeChild(0).close();
    try (ArrayStream stream = ArrayStream.of(table.build(), List.of(taken).iterator())) {
      String problem = "field \"a\": expected an array, got NULL or a released one";
      assertError(22, "get_next: batch 0: " + problem, stream::next);
    }
  }

  @Test
  void nextAcceptsNullsInValueStream() {
    Array batch = new ArrayBuilder(1).nullCount(1).buffers(64, 64).build(null);
    try (ArrayStream stream =
            ArrayStream.of(new SchemaBuilder("i").build(), List.of(batch).iterator());
        Array next = stream.next()) {
      assertEquals(1, next.nullCount());
    }
  }

  /** Later calls, possibly on other threads, return only the error. */
  @Test
  void iteratorInterruptIsRestoredOnce() {
    Raw raw = Raw.stream();
    ArrayStream.of(schema(), throwing(new InterruptedException("slow"))).moveTo(raw.address());
    for (boolean isFirst : new boolean[] {true, false, false}) {
      assertEquals(5, raw.call("get_next", Raw.array()));
      assertEquals("java.lang.InterruptedException: slow", raw.lastError());
      assertEquals(isFirst, Thread.interrupted());
    }
    raw.release();
  }

  @Test
  void errorTextIsKeptUntilNextCall() {
    Raw raw = Raw.stream();
    ArrayStream.of(
            schema(),
            iterator(
                i -> {
                  throw new FletchingException(0, i == 1 ? null : "text");
                }))
        .moveTo(raw.address());
    Raw out = Raw.array();
    assertEquals(5, raw.call("get_next", out)); // 0 is success
    assertEquals("errno 5", raw.lastError());
    assertEquals(5, raw.call("get_next", out));
    assertEquals("errno 5", raw.lastError()); // the iterator is not called again
    Raw schema = Raw.schema();
    assertEquals(0, raw.call("get_schema", schema));
    assertNull(raw.lastError());
    schema.release();
    raw.release();
    assertTrue(raw.isReleased());
  }

  @Test
  void ruleStreamCallsSerialized() {
    ArrayStream[] self = new ArrayStream[1];
    List<String> errors = new ArrayList<>();
    self[0] =
        through(
            iterator(
                i -> {
                  FletchingException busy =
                      assertThrows(FletchingException.class, () -> self[0].schema());
                  errors.add(busy.errno() + " " + busy.getMessage());
                  return batch(i);
                }));
    self[0].next().close();
    assertEquals(List.of("16 stream: in use: expected one call at a time"), errors);
    self[0].next().close();
    self[0].close();
  }

  @Test
  void batchReadAheadIsVisibleDuringCall() {
    ArrayStream[] self = new ArrayStream[1];
    List<Boolean> more = new ArrayList<>();
    Script.Fill getSchema =
        (stream, out) -> {
          more.add(self[0].hasNext());
          return 28;
        };
    Raw raw = Raw.stream();
    ArrayStream.of(schema(), List.of(batch(1)).iterator()).moveTo(raw.address());
    raw.set("get_schema", ForeignStructs.function(getSchema));
    self[0] = raw.give(ArrayStream::wrap);
    assertTrue(self[0].hasNext());
    assertError(28, "errno 28", self[0]::schema);
    assertEquals(List.of(true), more);
    self[0].close();
    assertClosed(closed, "batch 1");
  }

  @Test
  void closeDuringCallWaits() {
    ArrayStream[] self = new ArrayStream[1];
    self[0] =
        through(
            new Batches(
                () -> {
                  self[0].close();
                  assertClosed(closed);
                }));
    assertThrows(IllegalStateException.class, () -> self[0].hasNext());
    assertClosed(closed, "iterator", "batch 1");
  }

  /** Endless iterator that records its close. */
  private final class Batches implements Iterator<Array>, AutoCloseable {
    private final Runnable before;

    Batches(Runnable before) {
      this.before = before;
    }

    @Override
    public boolean hasNext() {
      return true;
    }

    @Override
    public Array next() {
      before.run();
      return batch(1);
    }

    @Override
    public void close() {
      closed.add("iterator");
    }
  }

  @Test
  void closeUnreadStreamClosesIterator() {
    through(new Batches(() -> {})).close();
    assertClosed(closed, "iterator");
    Schema gone = schema();
    gone.close();
    assertThrows(IllegalStateException.class, () -> ArrayStream.of(gone, new Batches(() -> {})));
    assertClosed(closed);
  }

  @Test
  void streamMayExportAnotherStream() {
    ArrayStream inner = three();
    try (ArrayStream outer = through(inner)) {
      outer.next().close();
    }
    assertTrue(inner.isReleased());
    assertClosed(closed, "batch 1");
  }

  @Test
  void missingCallbackErrorNamesRule() {
    Raw raw = Raw.stream();
    ArrayStream.of(schema(), List.<Array>of().iterator()).moveTo(raw.address());
    raw.set("get_next", 0);
    try (ArrayStream stream = raw.give(ArrayStream::wrap)) {
      assertError(
          22,
          "ArrowArrayStream.get_next: NULL: expected a callback; hint: fix the producer (rule"
              + " stream.callbacks-set)",
          stream::hasNext);
    }
  }

  private DeviceArrayStream on(DeviceType promised, DeviceType found) {
    DeviceArray batch = new ArrayBuilder(1).buffers(0, 0).buildOn(found, 0, 0, null);
    Raw raw = Raw.deviceStream();
    DeviceArrayStream.of(schema(), promised, List.of(batch).iterator()).moveTo(raw.address());
    return raw.give(DeviceArrayStream::wrap);
  }

  private boolean mayRead(DeviceType promised, DeviceType found) {
    try (DeviceArrayStream stream = on(promised, found)) {
      return Releases.errorOf(() -> stream.next().close()) == null;
    }
  }

  @Test
  void nextReportsBatchOnOtherDevice() {
    try (DeviceArrayStream stream = on(DeviceType.CUDA, DeviceType.CUDA);
        DeviceArray batch = stream.next()) {
      assertEquals(DeviceType.CUDA, stream.deviceType());
      assertEquals(DeviceType.CUDA, batch.deviceType());
    }
    try (DeviceArrayStream stream = on(DeviceType.CUDA, DeviceType.CPU)) {
      assertError(
          22,
          "batch: device_type differs from the stream's: expected cuda, got cpu, memory that the"
              + " stream's devices may not access (rule device-stream-result.accessible)",
          stream::next);
    }
    List<String> warnings = new ArrayList<>();
    try (DeviceArrayStream stream = on(DeviceType.CUDA, DeviceType.CUDA_HOST)) {
      stream.onWarning(warning -> warnings.add(warning.toString())).next().close();
    }
    DeviceType unknown = DeviceType.of(9999);
    assertTrue(mayRead(DeviceType.CPU, DeviceType.CUDA_MANAGED));
    assertTrue(mayRead(unknown, unknown));
    assertFalse(mayRead(DeviceType.CPU, DeviceType.CUDA));
    assertFalse(mayRead(DeviceType.CUDA_MANAGED, DeviceType.CUDA));
    assertFalse(mayRead(DeviceType.VPI, DeviceType.CPU));
    assertFalse(mayRead(DeviceType.CUDA, unknown));
    assertFalse(mayRead(unknown, DeviceType.CPU));
    String text =
        "batch: device_type differs from the stream's: expected cuda, got cuda_host (rule"
            + " device-stream.one-device-type)";
    assertEquals(List.of(text), warnings);
    try (DeviceArrayStream stream = on(DeviceType.CUDA, DeviceType.CUDA_HOST).strict()) {
      assertError(22, text, stream::next);
    }
  }

  @Test
  void ruleDeviceStreamDeviceTypeSet() {
    try (Schema schema = schema()) {
      assertError(
          22,
          "DeviceArrayStream.of: device_type: 0: expected the device type of the batches (rule"
              + " device-stream.device-type-set)",
          () -> DeviceArrayStream.of(schema, DeviceType.of(0), List.<DeviceArray>of().iterator()));
      assertFalse(schema.isReleased());
    }
  }

  @Test
  void errorOfOfNamesTheKindOfStream() {
    Schema released = schema();
    released.close();
    Iterator<Array> arrays = List.<Array>of().iterator();
    Iterator<DeviceArray> batches = List.<DeviceArray>of().iterator();
    Exception array = assertThrows(RuntimeException.class, () -> ArrayStream.of(released, arrays));
    assertTrue(array.getMessage().startsWith("ArrayStream.of: "), array.getMessage());
    Exception device =
        assertThrows(
            RuntimeException.class, () -> DeviceArrayStream.of(released, DeviceType.CPU, batches));
    assertTrue(device.getMessage().startsWith("DeviceArrayStream.of: "), device.getMessage());
  }

  @Test
  void warningConsumerMayThrowError() {
    try (DeviceArrayStream stream = on(DeviceType.CUDA, DeviceType.CUDA_HOST)) {
      stream.onWarning(
          warning -> {
            throw new AssertionError("refused");
          });
      assertThrows(AssertionError.class, stream::next);
      assertError(5, "java.lang.AssertionError: refused", stream::next);
    }
  }
}
