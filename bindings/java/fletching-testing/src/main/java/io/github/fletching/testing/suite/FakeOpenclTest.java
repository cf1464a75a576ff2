// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Releases.assertError;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.CountingEngine;
import io.github.fletching.testing.FakeLibraryEngine;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The OpenCL calls of each operation, on a fake driver with one event. The stand-ins do not include
 * OpenCL, and a driver that flushes implicitly hides a missing flush.
 */
@OnLibraryCopy
@Timeout(120)
class FakeOpenclTest {
  private static final int EIO = 5;
  private static final int EINVAL = 22;
  private static final long EVENT = 0x1_0000_0020L;
  private static final long QUEUE = 0x1_0000_0030L;
  private static final long PRODUCER = 0x1_0000_0040L; // the event's queue
  private static final long CONTEXT = 0x1_0000_0050L;
  private static final int STATE = 0x11d3;
  private static final int QUEUE_OF_EVENT = 0x11d0;
  private static final int CONTEXT_OF_QUEUE = 0x1090;
  private static final String READ_STATE = "clGetEventInfo 100000020 11d3 4";
  private static final String READ_QUEUE = "clGetEventInfo 100000020 11d0 8";
  private static final List<String> READ_CONTEXTS =
      List.of("clGetEventInfo 100000020 11d4 8", "clGetCommandQueueInfo 100000030 1090 8");
  private static final String FLUSH_PRODUCER = "clFlush 100000040";
  private static final String MARKER = "clEnqueueMarkerWithWaitList 100000030 0 0";
  private static final String FLUSH = "clFlush 100000030";
  private static final String RELEASE = "clReleaseEvent 100000020";
  private static final String NO_RESOURCES = " failed with CL_OUT_OF_RESOURCES (-5)";
  private static final DeviceStream STREAM = DeviceStream.of(DeviceType.OPENCL, QUEUE);

  private final List<String> calls = new CopyOnWriteArrayList<>();
  private final Map<Integer, Long> properties = // other queries write no value
      new ConcurrentHashMap<>(
          Map.of(STATE, 0L, QUEUE_OF_EVENT, PRODUCER, 0x11d4, CONTEXT, CONTEXT_OF_QUEUE, CONTEXT));
  private final Map<String, Integer> results = new ConcurrentHashMap<>();
  private final Memory handle = new Memory(8);

  private long call(String function, long... arguments) {
    StringBuilder text = new StringBuilder(function);
    for (long argument : arguments) {
      text.append(" ").append(Long.toHexString(argument));
    }
    calls.add(text.toString());
    return results.getOrDefault(function, 0);
  }

  private void installFake() {
    handle.setLong(0, EVENT);
    FakeLibraryEngine.libraries(Map.of("libOpenCL.so.1", true));
    for (String name : List.of("clGetEventInfo", "clGetCommandQueueInfo")) {
      FakeLibraryEngine.replace(
          name,
          (of, what, size, out, sizeOut) -> {
            Long value = properties.get((int) what);
            if (value != null && size == 4) {
              new Pointer(out).setInt(0, value.intValue());
            } else if (value != null) {
              new Pointer(out).setLong(0, value);
            }
            return call(name, of, what, size);
          });
    }
    for (String name : List.of("clFlush", "clFinish", "clReleaseEvent")) {
      FakeLibraryEngine.replace(name, (of, b, c, d, e) -> call(name, of));
    }
    FakeLibraryEngine.replace(
        "clWaitForEvents", (count, list, c, d, e) -> call("clWaitForEvents", count, list));
    FakeLibraryEngine.replace(
        "clEnqueueBarrierWithWaitList",
        (queue, count, list, out, e) ->
            call("clEnqueueBarrierWithWaitList", queue, count, list, out));
    FakeLibraryEngine.replace(
        "clEnqueueMarkerWithWaitList",
        (queue, count, list, out, e) -> {
          long code = call("clEnqueueMarkerWithWaitList", queue, count, list);
          new Pointer(out).setLong(0, code == 0 ? EVENT : 0);
          return code;
        });
  }

  /** Expects these calls since the previous check. */
  private void assertCalls(String... expected) {
    assertEquals(List.of(expected), calls);
    calls.clear();
  }

  private DeviceArray array() {
    return Releases.awaited(DeviceType.OPENCL, handle);
  }

  @Test
  void isReadyReadsState() {
    installFake();
    try (DeviceArray array = array()) {
      for (long state : new long[] {0, 1, 2, 77}) {
        properties.put(STATE, state);
        assertEquals(state == 0, array.isReady());
        assertCalls(READ_STATE);
      }
      properties.put(STATE, 3L); // queued: may need a flush
      for (int i = 0; i < 2; i++) {
        assertFalse(array.isReady());
        assertCalls(READ_STATE, READ_QUEUE, FLUSH_PRODUCER);
        properties.remove(STATE); // a driver that does not write the state
      }
      properties.put(STATE, -5L);
      assertError(EIO, "isReady: OpenCL: the command of the event" + NO_RESOURCES, array::isReady);
      properties.put(STATE, -9999L);
      assertError(
          EIO, "isReady: OpenCL: the command of the event failed with -9999", array::isReady);
      results.put("clGetEventInfo", -58);
      assertError(
          EINVAL,
          "isReady: OpenCL: clGetEventInfo failed with CL_INVALID_EVENT (-58); hint: check that stream and"
              + " event are alive, and that sync_event is the address of the event's handle, not"
              + " the handle",
          array::isReady);
    }
  }

  @Test
  void synchronizeWaitsForEvent() {
    installFake();
    String wait = "clWaitForEvents 1 " + Long.toHexString(Pointer.nativeValue(handle));
    try (DeviceArray array = array()) {
      array.synchronize();
      assertCalls(wait);
      results.put("clWaitForEvents", -5);
      assertError(EIO, "synchronize: OpenCL: clWaitForEvents" + NO_RESOURCES, array::synchronize);
      assertCalls(wait);
      results.put("clWaitForEvents", -14); // a command failed: its state is the reason
      properties.put(STATE, -5L);
      assertError(
          EIO, "synchronize: OpenCL: the command of the event" + NO_RESOURCES, array::synchronize);
      assertCalls(wait, READ_STATE);
      properties.put(STATE, 0L);
      assertError(
          EIO,
          "synchronize: OpenCL: clWaitForEvents failed with"
              + " CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST (-14)",
          array::synchronize);
    }
  }

  @Test
  void waitOnFlushesQueueOfProducer() {
    installFake();
    String barrier =
        "clEnqueueBarrierWithWaitList 100000030 1 "
            + Long.toHexString(Pointer.nativeValue(handle))
            + " 0";
    String ofEvent = READ_CONTEXTS.get(0);
    String ofQueue = READ_CONTEXTS.get(1);
    try (DeviceArray array = array()) {
      array.waitOn(STREAM);
      assertCalls(ofEvent, ofQueue, READ_QUEUE, FLUSH_PRODUCER, barrier);
      for (String name :
          List.of(
              "clGetEventInfo",
              "clGetCommandQueueInfo",
              "clFlush",
              "clEnqueueBarrierWithWaitList")) {
        results.put(name, -5);
        assertError(EIO, "waitOn: OpenCL: " + name + NO_RESOURCES, () -> array.waitOn(STREAM));
        results.clear();
      }
      calls.clear();
      properties.put(QUEUE_OF_EVENT, 0L); // a user event
      array.waitOn(STREAM);
      assertCalls(ofEvent, ofQueue, READ_QUEUE, barrier);
      properties.put(CONTEXT_OF_QUEUE, 0x50L);
      assertError(
          EINVAL,
          "waitOn: cl_context of the queue differs from the event's; hint: pass a queue of the"
              + " event's context, or wait on the host",
          () -> array.waitOn(STREAM));
      assertCalls(ofEvent, ofQueue);
      assertNullIsRefused("waitOn", array::waitOn);
    }
  }

  private void assertNullIsRefused(String name, Consumer<DeviceStream> operation) {
    assertError(
        EINVAL,
        name + ": stream is NULL: expected a cl_command_queue, because OpenCL has no default queue",
        () -> operation.accept(DeviceStream.of(DeviceType.OPENCL, 0)));
    assertCalls();
  }

  @Test
  void exportWithEventEnqueuesMarker() {
    installFake();
    DeviceArray array = new Releases().array(DeviceType.OPENCL);
    int allocations = CountingEngine.live();
    array.exportWithEvent(STREAM);
    assertEquals(EVENT, new Pointer(array.syncEvent()).getLong(0));
    assertCalls(MARKER, FLUSH);
    array.close();
    assertCalls(RELEASE);

    DeviceArray other = new Releases().array(DeviceType.OPENCL);
    results.put("clFlush", -5);
    assertError(
        EIO,
        "exportWithEvent: OpenCL: clFlush" + NO_RESOURCES,
        () -> other.exportWithEvent(STREAM));
    assertCalls(MARKER, FLUSH, RELEASE);
    String function = "clEnqueueMarkerWithWaitList";
    results.put(function, -5);
    assertError(
        EIO,
        "exportWithEvent: OpenCL: " + function + NO_RESOURCES,
        () -> other.exportWithEvent(STREAM));
    assertCalls(MARKER); // no event was created
    assertNullIsRefused("exportWithEvent", other::exportWithEvent);
    assertEquals(0, other.syncEvent());
    other.close();
    assertEquals(allocations, CountingEngine.live());
  }

  /** Clears the recorded calls and waits until the state was read {@code count} times. */
  private void awaitQueries(int count) {
    calls.clear();
    while (calls.stream().filter(READ_STATE::equals).count() < count) {
      Releases.pause();
    }
  }

  private static void assertPending(String expected) {
    assertEquals(expected, DeviceArray.pendingReleases().toString());
  }

  /** A failed command is final too, but other commands in the queue may still run. */
  @Test
  void releaseAfterQueriesUntilEventHasPassed() {
    installFake();
    for (long last : new long[] {0, -5, -9999}) {
      properties.put(STATE, 3L);
      Releases releases = new Releases();
      releases.array(DeviceType.OPENCL).releaseAfter(STREAM);
      for (long state = 2; state > 0; state--) {
        awaitQueries(3);
        releases.assertCount(0);
        properties.put(STATE, state);
      }
      assertPending("pending 1, refused 0: ");
      properties.put(STATE, last);
      releases.waitFor(1);
      int finished = calls.indexOf("clFinish 100000040");
      assertEquals(last != 0, finished >= 0);
      assertTrue(finished < calls.indexOf(RELEASE), calls.toString());
      assertPending("pending 0, refused 0: ");
    }
  }

  /** The first operation cannot allocate an event, so it loads the library only to wait. */
  @Test
  void releaseAfterWithoutMemoryWaitsForQueue() {
    installFake();
    Releases releases = new Releases();
    DeviceArray array = releases.array(DeviceType.OPENCL);
    CountingEngine.failAt(1);
    array.releaseAfter(STREAM);
    releases.assertCount(1);
    assertEquals(0, CountingEngine.failAt(0));
    assertCalls("clFinish 100000030");
  }

  @Test
  void releaseAfterKeepsArrayWhileQueriesFail() {
    installFake();
    results.put("clGetEventInfo", -5);
    Releases releases = new Releases();
    releases.array(DeviceType.OPENCL).releaseAfter(STREAM);
    awaitQueries(6);
    releases.assertCount(0);
    String text = "OpenCL: clGetEventInfo" + NO_RESOURCES;
    assertPending("pending 1, refused 1: " + text);
    properties.put(STATE, 3L);
    results.clear();
    awaitQueries(2);
    assertPending("pending 1, refused 0: " + text);
    properties.put(STATE, 0L);
    releases.waitFor(1);
    assertPending("pending 0, refused 0: " + text);
  }
}
