// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.EINVAL;
import static io.github.fletching.abi.Errno.EIO;
import static io.github.fletching.abi.Errno.ENOSYS;
import static io.github.fletching.testing.suite.Releases.assertError;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.PendingReleases;
import io.github.fletching.VendorFunctions;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Engines;
import io.github.fletching.testing.CountingEngine;
import io.github.fletching.testing.NativeLibraries;
import java.nio.file.Files;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The OpenCL calls of each operation, on a real driver behind the interposer of tests/faults, which
 * counts calls and makes them fail. The conformance suite covers waits for a gate.
 */
@Timeout(120)
class OpenclTest {
  private static final String LIBRARY = "libOpenCL.so.1";
  private static final String NO_DEVICE = "this machine has no OpenCL device";
  private static final String NO_RESOURCES = " failed with CL_OUT_OF_RESOURCES (-5)";
  private static final String OF_EVENT = "OpenCL: the command of the event failed with ";
  private static final int STATE = 0x11d3;

  @ParameterizedTest(name = "{0}")
  @ValueSource(
      strings = {
        "isReadyReadsState",
        "failedCommandIsError",
        "synchronizeReportsFailedWait",
        "waitOnFlushesQueueOfProducer",
        "exportWithEventEnqueuesMarker",
        "missingFunctionFailsOnlyItsOperations",
        "releaseAfterQueriesUntilEventHasPassed",
        "releaseAfterFailedCommandFinishesQueue",
        "releaseAfterWithoutMemoryWaitsForQueue",
        "releaseAfterKeepsArrayWhileQueriesFail"
      })
  void onInterposer(String method) {
    boolean isBuilt = Files.exists(NativeLibraries.folder().resolve("interposers/" + LIBRARY));
    assumeTrue(isBuilt, "this machine has no " + LIBRARY);
    String engine = "-D" + Engines.PROPERTY + "=" + CountingEngine.NAME;
    assumeFalse(Child.run(this, method, engine).contains(NO_DEVICE), NO_DEVICE);
  }

  /** Two queues, and an event of the producer's queue behind a gate. */
  private static final class Driver implements AutoCloseable {
    // By name, so that the tested code finds it before the library behind it.
    private final NativeLibrary library = NativeLibrary.getInstance(LIBRARY);
    private final long before = alive();
    private final Memory cell = new Memory(16);
    private final long device = findDevice();
    private final long context = makeContext();
    private final long producer = makeQueue(context);
    private final long queue = makeQueue(context);
    final DeviceStream stream = DeviceStream.of(DeviceType.OPENCL, queue);
    final long gate = makeUserEvent();
    final long event = makeMarker();
    final List<String> log = new CopyOnWriteArrayList<>();
    private boolean isShut = true;

    long call(String name, Object... arguments) {
      return library.getFunction(name).invokeLong(arguments);
    }

    void ok(String name, Object... arguments) {
      assertEquals(0, (int) call(name, arguments), name);
    }

    private long findDevice() {
      cell.clear();
      if ((int) call("clGetPlatformIDs", 1L, cell, 0L) != 0) {
        System.out.println(NO_DEVICE);
        System.exit(0);
      }
      ok("clGetDeviceIDs", cell.getLong(0), 0xFFFFFFFFL, 1L, cell, 0L);
      return cell.getLong(0);
    }

    long makeContext() {
      cell.setLong(0, device);
      return call("clCreateContext", 0L, 1L, cell, 0L, 0L, 0L);
    }

    long makeQueue(long context) {
      return call("clCreateCommandQueue", context, device, 0L, 0L);
    }

    long makeUserEvent() {
      return call("clCreateUserEvent", context, 0L);
    }

    private long makeMarker() {
      cell.setLong(0, gate);
      ok("clEnqueueMarkerWithWaitList", producer, 1L, cell, cell.share(8));
      return cell.getLong(8);
    }

    void openGate() {
      isShut = false;
      ok("clSetUserEventStatus", gate, 0L);
      ok("clFinish", producer);
    }

    @Override
    public void close() {
      if (isShut) {
        openGate();
      }
      ok("clReleaseEvent", gate);
      ok("clReleaseEvent", event);
      release(queue);
      release(producer);
      ok("clReleaseContext", context);
      assertEquals(before, alive());
    }

    void release(long queue) {
      ok("clReleaseCommandQueue", queue);
    }

    long alive() {
      return call("FletchingInterposerLeaks", 0L);
    }

    long calls(String function) {
      return call("FletchingInterposerCalls", function);
    }

    /** Runs the operation with a fault, {@code function:n:error}, and expects this error. */
    void assertFails(int code, String text, String fault, Runnable operation) {
      ok("FletchingInterposerSetFault", fault);
      Releases.assertFails(code, operation::run, ": " + text);
      call("FletchingInterposerResetFaults");
    }

    void assertFails(String function, Runnable operation) {
      String fault = function + ":1:CL_OUT_OF_RESOURCES";
      assertFails(EIO, "OpenCL: " + function + NO_RESOURCES, fault, operation);
    }

    /** Runs the body, and logs on which queue it calls the function. */
    private void logging(String function, Runnable body) {
      VendorFunctions.replace(
          function,
          (of, b, c, d) -> {
            log.add(function + (of == producer ? " producer" : of == queue ? " queue" : ""));
            return call(function, of);
          },
          body);
    }

    /** Runs the operation, and expects these calls that flush, finish or release. */
    void assertCalls(Runnable operation, String... expected) {
      log.clear();
      logging("clFlush", () -> logging("clFinish", () -> logging("clReleaseEvent", operation)));
      assertEquals(List.of(expected), log);
    }

    /** Runs the body while all events have this state; null leaves the query's output alone. */
    void withState(Integer state, Runnable body) {
      VendorFunctions.replace(
          "clGetEventInfo",
          (of, what, size, out) -> {
            if ((int) what != STATE) {
              return call("clGetEventInfo", of, what, size, out, 0L);
            }
            if (state != null) {
              new Pointer(out).setInt(0, state);
            }
            return 0;
          },
          body);
    }

    void awaitQueries(int count) {
      long known = calls("clGetEventInfo");
      while (calls("clGetEventInfo") < known + count) {
        assertEquals(1, DeviceArray.pendingReleases().pending());
        Releases.pause();
      }
    }
  }

  private static DeviceArray array(long event) {
    Memory handle = new Memory(8);
    handle.setLong(0, event);
    return Releases.awaited(DeviceType.OPENCL, handle);
  }

  void isReadyReadsState() {
    try (Driver cl = new Driver();
        DeviceArray user = array(cl.gate); // of no queue
        DeviceArray array = array(cl.event)) { // queued: may need a flush
      Runnable isPending = () -> assertFalse(array.isReady());
      cl.assertCalls(() -> assertFalse(user.isReady()));
      cl.assertCalls(isPending, "clFlush producer");
      cl.withState(null, () -> cl.assertCalls(isPending, "clFlush producer"));
      cl.withState(1, () -> cl.assertCalls(isPending));
      cl.withState(77, () -> cl.assertCalls(isPending));
      cl.assertFails("clGetEventInfo", array::isReady);
      cl.assertFails(
          EINVAL,
          "OpenCL: clGetEventInfo failed with CL_INVALID_EVENT (-58); hint: check that stream and"
              + " event are alive, and that sync_event is the address of the event's handle, not"
              + " the handle",
          "clGetEventInfo:1:CL_INVALID_EVENT",
          array::isReady);
      cl.openGate();
      cl.assertCalls(() -> assertTrue(array.isReady()));
    }
  }

  void failedCommandIsError() {
    try (Driver cl = new Driver()) {
      for (long state : new long[] {-5, -9999}) {
        long event = cl.makeUserEvent();
        cl.ok("clSetUserEventStatus", event, state);
        String text = OF_EVENT + (state == -5 ? "CL_OUT_OF_RESOURCES (-5)" : "-9999");
        try (DeviceArray array = array(event)) {
          assertError(EIO, "isReady: " + text, array::isReady);
          assertError(EIO, "synchronize: " + text, array::synchronize);
        }
        cl.ok("clReleaseEvent", event);
      }
    }
  }

  void synchronizeReportsFailedWait() {
    try (Driver cl = new Driver();
        DeviceArray array = array(cl.event)) {
      cl.openGate();
      long queries = cl.calls("clGetEventInfo");
      array.synchronize();
      cl.assertFails("clWaitForEvents", array::synchronize);
      assertEquals(queries, cl.calls("clGetEventInfo"));
      String name = "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"; // although it has succeeded
      String text = "OpenCL: clWaitForEvents failed with " + name + " (-14)";
      cl.assertFails(EIO, text, "clWaitForEvents:1:" + name, array::synchronize);
    }
  }

  void waitOnFlushesQueueOfProducer() {
    try (Driver cl = new Driver();
        DeviceArray array = array(cl.event);
        DeviceArray user = array(cl.gate)) {
      Runnable wait = () -> array.waitOn(cl.stream);
      cl.assertCalls(wait, "clFlush producer");
      cl.assertCalls(() -> user.waitOn(cl.stream));
      cl.assertFails("clGetEventInfo", wait);
      cl.assertFails("clGetCommandQueueInfo", wait);
      cl.assertFails("clFlush", wait);
      cl.assertFails("clEnqueueBarrierWithWaitList", wait);
      assertNullIsRefused(cl, array::waitOn);

      long context = cl.makeContext();
      long queue = cl.makeQueue(context);
      DeviceStream stream = DeviceStream.of(DeviceType.OPENCL, queue);
      String text =
          "waitOn: cl_context of the queue differs from the event's; hint: pass a queue of the"
              + " event's context, or wait on the host";
      cl.assertCalls(() -> assertError(EINVAL, text, () -> array.waitOn(stream)));
      cl.release(queue);
      cl.ok("clReleaseContext", context);
    }
  }

  private static void assertNullIsRefused(Driver cl, Consumer<DeviceStream> operation) {
    DeviceStream none = DeviceStream.of(DeviceType.OPENCL, 0);
    String text =
        ": stream is NULL: expected a cl_command_queue, because OpenCL has no default queue";
    cl.assertCalls(() -> Releases.assertFails(EINVAL, () -> operation.accept(none), text));
  }

  void exportWithEventEnqueuesMarker() {
    try (Driver cl = new Driver()) {
      long alive = cl.alive();
      DeviceArray first = new Releases().array(DeviceType.OPENCL);
      int memory = CountingEngine.live();
      cl.assertCalls(() -> first.exportWithEvent(cl.stream), "clFlush queue");
      assertEquals(alive + 1, cl.alive());
      first.synchronize();
      cl.assertCalls(first::close, "clReleaseEvent");

      DeviceArray array = new Releases().array(DeviceType.OPENCL);
      Runnable export = () -> array.exportWithEvent(cl.stream);
      cl.assertFails("clFlush", export);
      cl.assertFails("clEnqueueMarkerWithWaitList", export);
      assertNullIsRefused(cl, array::exportWithEvent);
      assertEquals(0, array.syncEvent());
      array.close();
      assertEquals(alive, cl.alive());
      assertEquals(memory, CountingEngine.live());
    }
  }

  void missingFunctionFailsOnlyItsOperations() {
    try (Driver cl = new Driver();
        DeviceArray array = array(cl.event);
        DeviceArray other = new Releases().array(DeviceType.OPENCL)) {
      cl.openGate();
      long alive = cl.alive();
      int memory = CountingEngine.live();
      Runnable others =
          () -> {
            assertTrue(array.isReady());
            array.waitOn(cl.stream);
          };
      VendorFunctions.without("clWaitForEvents", others);
      assertLacks("clWaitForEvents", array::synchronize);
      assertLacks("clFlush", () -> other.exportWithEvent(cl.stream));
      assertLacks("clReleaseEvent", () -> other.exportWithEvent(cl.stream));
      assertEquals(0, other.syncEvent());
      assertEquals(alive, cl.alive());
      assertEquals(memory, CountingEngine.live());
    }
  }

  private static void assertLacks(String function, Runnable operation) {
    String text = "OpenCL: libOpenCL.so.1 has no " + function + "; hint: install a newer version";
    VendorFunctions.without(
        function, () -> Releases.assertFails(ENOSYS, operation::run, ": " + text));
  }

  // --- Releases after a stream

  private static void assertPending(int pending, int refused) {
    PendingReleases counts = DeviceArray.pendingReleases();
    assertEquals(pending, counts.pending());
    assertEquals(refused, counts.refused());
  }

  private static void await(Releases releases) {
    releases.waitFor(1);
    while (DeviceArray.pendingReleases().running() > 0) {
      Releases.pause();
    }
    assertPending(0, 0);
  }

  void releaseAfterQueriesUntilEventHasPassed() {
    try (Driver cl = new Driver();
        DeviceArray array = array(cl.event)) {
      Releases releases = new Releases(() -> cl.log.add("release"));
      array.waitOn(cl.stream);
      cl.assertCalls(
          () -> {
            releases.array(DeviceType.OPENCL).releaseAfter(cl.stream);
            cl.awaitQueries(3);
            assertPending(1, 0);
            releases.assertCount(0);
            cl.openGate();
            await(releases);
          },
          "clFlush queue",
          "clReleaseEvent",
          "release");
    }
  }

  /** A failed command is final too, but other commands in the queue may still run. */
  void releaseAfterFailedCommandFinishesQueue() {
    try (Driver cl = new Driver()) {
      for (int state : new int[] {-5, -9999}) {
        Releases releases = new Releases(() -> cl.log.add("release"));
        Runnable operation =
            () -> {
              releases.array(DeviceType.OPENCL).releaseAfter(cl.stream);
              await(releases);
            };
        String[] calls = {"clFlush queue", "clFinish queue", "clReleaseEvent", "release"};
        cl.withState(state, () -> cl.assertCalls(operation, calls));
      }
    }
  }

  /** The first operation cannot allocate an event, so it loads the library only to wait. */
  void releaseAfterWithoutMemoryWaitsForQueue() {
    try (Driver cl = new Driver()) {
      long finished = cl.calls("clFinish");
      long queries = cl.calls("clGetEventInfo");
      Releases releases = new Releases();
      DeviceArray array = releases.array(DeviceType.OPENCL);
      CountingEngine.failAt(1);
      array.releaseAfter(cl.stream);
      releases.assertCount(1);
      assertEquals(0, CountingEngine.failAt(0));
      assertEquals(finished + 1, cl.calls("clFinish"));
      assertEquals(queries, cl.calls("clGetEventInfo"));
    }
  }

  void releaseAfterKeepsArrayWhileQueriesFail() {
    try (Driver cl = new Driver()) {
      Releases releases = new Releases();
      cl.ok("FletchingInterposerSetFault", "clGetEventInfo:*:CL_OUT_OF_RESOURCES");
      releases.array(DeviceType.OPENCL).releaseAfter(cl.stream);
      cl.awaitQueries(6);
      releases.assertCount(0);
      assertPending(1, 1);
      cl.call("FletchingInterposerResetFaults");
      await(releases);
      String text = "OpenCL: clGetEventInfo" + NO_RESOURCES;
      assertEquals(text, DeviceArray.pendingReleases().lastRefusal());
    }
  }
}
