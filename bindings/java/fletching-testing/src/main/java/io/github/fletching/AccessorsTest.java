// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.CapturedLog;
import io.github.fletching.testing.suite.Child;
import io.github.fletching.testing.suite.EmptyCommonPool;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Accessors of owners, views and streams, and the errors they report. */
class AccessorsTest {
  @Test
  void arrayReturnsCountsAndBuffers() {
    try (Array array = new ArrayBuilder(3).offset(2).nullCount(1).buffers(0, 4096).build(null)) {
      assertEquals(List.of(3L, 2L, 1L), List.of(array.length(), array.offset(), array.nullCount()));
      assertEquals(2, array.buffers().length);
      assertEquals(4096, array.buffers()[1]);
      // A count this large is implausible.
      for (long count : new long[] {-1, Kind.MOST_STRUCTS + 1L}) {
        Native.C.putLong(array.address() + Fields.ARRAY_N_BUFFERS, count);
        assertEquals(0, array.buffers().length);
      }
      long many = Native.C.allocate(8L * Kind.MOST_STRUCTS);
      long few = Native.C.getAddress(array.address() + Fields.ARRAY_BUFFERS);
      Native.C.putLong(array.address() + Fields.ARRAY_N_BUFFERS, Kind.MOST_STRUCTS);
      Native.C.putAddress(array.address() + Fields.ARRAY_BUFFERS, many);
      assertEquals(Kind.MOST_STRUCTS, array.buffers().length);
      Native.C.putAddress(array.address() + Fields.ARRAY_BUFFERS, few);
      Native.C.free(many);
    }
  }

  /** A value equal to the limit is accepted. */
  @Test
  void limitsAreExact() {
    assertNull(Tree.excess(255, 1 << 22));
    assertEquals("nested too deep: expected at most 256 levels", Tree.excess(256, 1));
    assertEquals(
        "one of too many: expected at most 4194304 structs", Tree.excess(0, (1 << 22) + 1));
    try (Array array = new ArrayBuilder(0).child(new ArrayBuilder(0)).build(null)) {
      Native.C.putLong(array.address() + Fields.ARRAY_N_CHILDREN, 1 << 22);
      assertEquals(1 << 22, array.childCount());
      Native.C.putLong(array.address() + Fields.ARRAY_N_CHILDREN, (1 << 22) + 1);
      assertEquals(0, array.childCount());
      Native.C.putLong(array.address() + Fields.ARRAY_N_CHILDREN, 1);
    }
  }

  @Test
  void shareIsReleasedAfterClose() {
    try (Array array = new ArrayBuilder(0).child(new ArrayBuilder(0)).build(null)) {
      Shared<Array> shared = array.share();
      assertFalse(shared.isReleased());
      assertEquals(1, shared.columnCount());
      for (int index : new int[] {-1, 1}) {
        assertEquals(
            "column: child " + index + ": no such child: expected an index below 1",
            assertThrows(FletchingException.class, () -> shared.column(index)).getMessage());
      }
      shared.close();
      assertTrue(shared.isReleased());
    }
  }

  /** A consumer that kept the function pointer calls it again. */
  @Test
  void secondReleaseFromCIsIgnored() {
    long struct = Native.C.allocate(Kind.ARRAY.size);
    new ArrayBuilder(0).build(null).moveTo(struct);
    long release = Native.C.getAddress(struct + Kind.ARRAY.release);
    CapturedLog log = new CapturedLog();
    try {
      Native.C.run(release, struct);
      assertTrue(Kind.ARRAY.isReleased(struct));
      Native.C.run(release, struct);
      assertEquals(List.of(), log.take());
    } finally {
      log.close();
    }
    Native.C.free(struct);
  }

  /** Simulates a C release during shutdown hooks; the test releases the array at its end. */
  @Test
  void releaseFromCDuringShutdownIsCounted() throws ReflectiveOperationException {
    Field shutdown = Exported.class.getDeclaredField("shutdown");
    shutdown.setAccessible(true);
    List<String> closed = new ArrayList<>();
    AutoCloseable object = () -> closed.add("object");
    long struct = Native.C.allocate(Kind.ARRAY.size);
    new ArrayBuilder(0).build(object).moveTo(struct);
    long release = Native.C.getAddress(struct + Kind.ARRAY.release);
    long before = Owner.lateReleases();
    ByteArrayOutputStream printed = new ByteArrayOutputStream();
    PrintStream console = System.err;
    assertFalse(Exported.isShutdown());
    shutdown.set(null, true);
    System.setErr(new PrintStream(printed, true, StandardCharsets.UTF_8));
    try {
      assertTrue(Exported.isShutdown());
      for (int i = 0; i < 3; i++) {
        Native.C.run(release, struct); // the second call finds the struct released
        assertTrue(Kind.ARRAY.isReleased(struct));
        assertEquals(before + 1 + i / 2, Owner.lateReleases());
        if (i == 1) {
          Native.C.putAddress(struct + Kind.ARRAY.release, release);
        }
      }
    } finally {
      System.setErr(console);
      shutdown.set(null, false);
    }
    String text = "fletching: ArrowArray.release during shutdown: it leaks, as any later";
    assertEquals(before == 0 ? text : "", printed.toString(StandardCharsets.UTF_8).trim());
    assertEquals(List.of(), closed);
    Native.C.putAddress(struct + Kind.ARRAY.release, release);
    Native.C.run(release, struct);
    assertEquals(List.of("object"), closed);
    Native.C.free(struct);
  }

  @Test
  void errnoIsAlwaysPositive() {
    for (int errno : new int[] {1, 2, 28, Integer.MAX_VALUE}) {
      assertEquals(errno, new FletchingException(errno, "text").errno());
      assertEquals("errno " + errno, new FletchingException(errno, null).getMessage());
      assertEquals("errno " + errno, new FletchingException(errno, "").getMessage());
    }
    for (int errno : new int[] {0, -1, Integer.MIN_VALUE}) {
      assertEquals(FletchingException.EIO, new FletchingException(errno, "text").errno());
    }
    Exception cause = new Exception("on purpose");
    FletchingException error = new FletchingException(28, "text", cause);
    assertEquals("text", error.getMessage());
    assertEquals(cause, error.getCause());
  }

  @Test
  void toBuilderRejectsMovedOutSchema() {
    Schema schema = new SchemaBuilder("+s").child(new SchemaBuilder("i")).build();
    assertEquals("Schema[live]", schema.toString());
    SchemaView view = schema.view();
    Slot there = Slot.take(Kind.SCHEMA);
    Kind.SCHEMA.move(schema.address(), there.address);
    assertEquals(
        "toBuilder: schema is released: expected a live schema",
        assertThrows(FletchingException.class, view::toBuilder).getMessage());
    schema.close();
    Kind.SCHEMA.releaseOnce(there.address);
    there.free();
  }

  @Test
  void vulkanContextRejectsOtherDevices() {
    VulkanContext context = VulkanContext.of(1, 0).onQueue(2, 3, 4);
    try (DeviceArray ready = new ArrayBuilder(0).buildOn(DeviceType.VULKAN, 0, 0, null)) {
      assertTrue(ready.isReady(context));
      ready.synchronize(context);
      ready.waitOn(context, 0);
    }
    long event = 0x1000;
    try (DeviceArray other = new ArrayBuilder(0).buildOn(DeviceType.CUDA, 0, event, null)) {
      Map<String, Consumer<DeviceArray>> uses =
          Map.of(
              "isReady",
              each -> each.isReady(context),
              "synchronize",
              each -> each.synchronize(context),
              "waitOn",
              each -> each.waitOn(context, 0));
      uses.forEach(
          (operation, use) ->
              assertEquals(
                  operation + ": expected an event of Vulkan, got one of cuda",
                  assertThrows(FletchingException.class, () -> use.accept(other)).getMessage()));
    }
    try (DeviceArray array = new ArrayBuilder(0).buildOn(DeviceType.VULKAN, 0, event, null)) {
      assertEquals(
          "waitOn: command buffer is NULL: expected a VkCommandBuffer that is being recorded,"
              + " because a VkQueue cannot wait for a VkEvent",
          assertThrows(FletchingException.class, () -> array.waitOn(context, 0)).getMessage());
    }
  }

  @Test
  void streamRejectsOtherRuntime() {
    DeviceStream cuda = DeviceStream.of(DeviceType.CUDA, 0x10);
    assertEquals("stream 0x10 of cuda", cuda.toString());
    assertEquals(OnCapture.REFUSE, cuda.onCapture());
    assertEquals(OnCapture.EXTERNAL, cuda.onCapture(OnCapture.EXTERNAL).onCapture());
    cuda.checked(DeviceType.CUDA);
    cuda.checked(DeviceType.CUDA_MANAGED);
    refuse(cuda, DeviceType.ROCM);
    refuse(cuda, DeviceType.EXT_DEV);
    DeviceStream other = DeviceStream.of(DeviceType.EXT_DEV, 1);
    other.checked(DeviceType.EXT_DEV);
    refuse(other, DeviceType.of(77));
    refuse(other, DeviceType.CUDA);
  }

  private static void refuse(DeviceStream stream, DeviceType expected) {
    assertEquals(
        String.format(
            "stream of another runtime: expected one of %s, got one of %s",
            expected, stream.deviceType()),
        assertThrows(FletchingException.class, () -> stream.checked(expected)).getMessage());
  }

  /** The setter throws at once, not later on another thread. */
  @Test
  void settersRejectNull() {
    DeviceStream stream = DeviceStream.of(DeviceType.CUDA, 1);
    try (AsyncDeviceStream async = new AsyncDeviceStream();
        DeviceArrayStream batches =
            DeviceArrayStream.of(
                new SchemaBuilder("n").build(),
                DeviceType.CPU,
                List.<DeviceArray>of().iterator())) {
      List<Executable> calls =
          List.of(
              () -> DeviceStream.of(null, 1),
              () -> stream.onCapture(null),
              () -> async.onSchema(null),
              () -> async.onTask(null),
              () -> async.onWarning(null),
              () -> batches.onWarning(null));
      calls.forEach(call -> assertThrows(NullPointerException.class, call));
    }
  }

  @Test
  void pendingReleasesToStringListsCounts() {
    PendingReleases releases = new PendingReleases(3, 1, 2, 4, 5, "lost");
    assertEquals("pending 3, refused 1, leaked 4: lost", releases.toString());
    assertEquals(
        "pending 3, refused 1: lost", new PendingReleases(3, 1, 2, 0, 0, "lost").toString());
    assertEquals(2, releases.running());
    assertEquals(4, releases.leaked());
    assertEquals(5, releases.leakedEvents());
    assertEquals(3, releases.pending());
    assertEquals(1, releases.refused());
    assertEquals("lost", releases.lastRefusal());
  }

  /** Such a pool reports a parallelism of 1. */
  @Test
  void commonPoolWithoutThreadsIsNotUsed() {
    String option = "-Djava.util.concurrent.ForkJoinPool.common.parallelism=";
    for (int parallelism = 0; parallelism < 3; parallelism++) {
      String output = Child.runMain(EmptyCommonPool.class, option + parallelism);
      assertTrue(output.endsWith("arrived\n"), output);
    }
  }

  @Test
  void sendEmptyStreamCompletes() {
    assertEquals(
        List.of(0L),
        sent(
            (schema, handler) ->
                AsyncDeviceStreams.send(schema, DeviceType.CPU, nothing(), handler)));
    assertEquals(
        List.of(0L),
        sent(
            (schema, handler) ->
                AsyncDeviceStreams.send(
                    schema, DeviceType.CPU, Metadata.EMPTY, nothing(), Runnable::run, handler)));
  }

  private static List<Long> sent(BiFunction<Schema, Long, CompletionStage<Void>> send) {
    AsyncRows rows = new AsyncRows(1, 0);
    try (AsyncDeviceStream stream = new AsyncDeviceStream()) {
      stream.subscribe(rows);
      send.apply(AsyncRows.schema(), stream.handlerAddress()).toCompletableFuture().join();
    }
    return rows.await();
  }

  private static <T> Flow.Publisher<T> nothing() {
    return subscriber -> {
      subscriber.onSubscribe(
          new Flow.Subscription() {
            @Override
            public void request(long n) {}

            @Override
            public void cancel() {}
          });
      subscriber.onComplete();
    };
  }
}
