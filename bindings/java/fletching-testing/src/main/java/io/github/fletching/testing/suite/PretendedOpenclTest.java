// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.PretendedOpencl.EVENT;
import static io.github.fletching.testing.suite.PretendedOpencl.OF_EVENT_CONTEXT;
import static io.github.fletching.testing.suite.PretendedOpencl.OF_EVENT_QUEUE;
import static io.github.fletching.testing.suite.PretendedOpencl.OF_EVENT_STATE;
import static io.github.fletching.testing.suite.PretendedOpencl.OF_QUEUE_CONTEXT;
import static io.github.fletching.testing.suite.PretendedOpencl.PRODUCER;
import static io.github.fletching.testing.suite.PretendedOpencl.QUEUE;
import static io.github.fletching.testing.suite.PretendedOpencl.ofEvent;
import static io.github.fletching.testing.suite.PretendedOpencl.ofQueue;
import static io.github.fletching.testing.suite.PretendedOpencl.text;
import static io.github.fletching.testing.suite.Releases.assertError;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.PendingReleases;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.Counting;
import io.github.fletching.testing.Pretending;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Every call of OpenCL that an operation makes, on a driver that is written in Java. */
@Timeout(120)
class PretendedOpenclTest {
  private static final int EIO = 5;
  private static final int EINVAL = 22;
  private static final String HINT =
      "; hint: check that stream and event are alive, and that sync_event is the address of the"
          + " event's handle, not the handle";

  @Test
  void aQueryReadsTheState() {
    Copy.run(this, "query");
  }

  void query() {
    PretendedOpencl driver = new PretendedOpencl();
    try (DeviceArray array = driver.array()) {
      List<Boolean> answers = new ArrayList<>();
      for (long state : new long[] {0, 1, 2, 3, 77}) {
        driver.properties.put(OF_EVENT_STATE, state);
        answers.add(array.isReady());
        List<String> expected = new ArrayList<>(List.of(ofEvent(OF_EVENT_STATE, 4)));
        if (state == 3) { // queued: nothing runs it before a flush
          expected.addAll(List.of(ofEvent(OF_EVENT_QUEUE, 8), text("clFlush", PRODUCER)));
        }
        assertEquals(expected, driver.take());
      }
      assertEquals(List.of(true, false, false, false, false), answers);
      driver.properties.put(OF_EVENT_STATE, -5L);
      assertError(
          EIO,
          "OpenCL: the command of the event failed with CL_OUT_OF_RESOURCES (-5)",
          array::isReady);
      driver.properties.put(OF_EVENT_STATE, -9999L);
      assertError(EIO, "OpenCL: the command of the event failed with -9999", array::isReady);
      driver.properties.remove(OF_EVENT_STATE); // no answer
      assertFalse(array.isReady());
      driver.results.put("clGetEventInfo", -58);
      assertError(
          EINVAL,
          "OpenCL: clGetEventInfo failed with CL_INVALID_EVENT (-58)" + HINT,
          array::isReady);
    }
  }

  /** The first page is never mapped, and only there is an address that is not one of a handle. */
  @Test
  void theSecondPageMayHaveAnEvent() {
    Copy.run(this, "secondPage");
  }

  void secondPage() {
    PretendedOpencl driver = new PretendedOpencl();
    Pretending.word(4096, EVENT);
    Pretending.word(-8, EVENT); // the highest address
    for (long address : new long[] {4096, -8}) {
      try (DeviceArray array = new Releases().array(DeviceType.OPENCL, 0, address)) {
        assertTrue(array.isReady());
        assertEquals(List.of(ofEvent(OF_EVENT_STATE, 4)), driver.take());
      }
    }
    String text =
        "sync_event of opencl: not the address of a handle: expected an aligned address; hint: pass"
            + " the handle's address, not the handle";
    for (long address : new long[] {8, 4095, 4097, -1}) {
      try (DeviceArray array = new Releases().array(DeviceType.OPENCL, 0, address)) {
        assertError(EINVAL, text, array::isReady);
      }
    }
  }

  @Test
  void aWaitOfTheHostWaitsForTheEvent() {
    Copy.run(this, "waitOfTheHost");
  }

  void waitOfTheHost() {
    PretendedOpencl driver = new PretendedOpencl();
    String wait = text("clWaitForEvents", 1, Pointer.nativeValue(driver.handle));
    try (DeviceArray array = driver.array()) {
      array.synchronize();
      assertEquals(List.of(wait), driver.take());
      driver.results.put("clWaitForEvents", -5);
      assertError(
          EIO, "OpenCL: clWaitForEvents failed with CL_OUT_OF_RESOURCES (-5)", array::synchronize);
      assertEquals(List.of(wait), driver.take());
      // The command itself has failed, and the state of the event says how.
      driver.results.put("clWaitForEvents", -14);
      driver.properties.put(OF_EVENT_STATE, -4L);
      assertError(
          EIO,
          "OpenCL: the command of the event failed with CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)",
          array::synchronize);
      assertEquals(List.of(wait, ofEvent(OF_EVENT_STATE, 4)), driver.take());
      driver.properties.put(OF_EVENT_STATE, 0L);
      assertError(
          EIO,
          "OpenCL: clWaitForEvents failed with CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST (-14)",
          array::synchronize);
    }
  }

  @Test
  void aWaitOfAQueueFlushesTheProducer() {
    Copy.run(this, "waitOfAQueue");
  }

  void waitOfAQueue() {
    PretendedOpencl driver = new PretendedOpencl();
    long event = Pointer.nativeValue(driver.handle);
    String barrier = text("clEnqueueBarrierWithWaitList", QUEUE, 1, event, 0);
    List<String> asked =
        List.of(ofEvent(OF_EVENT_CONTEXT, 8), ofQueue(), ofEvent(OF_EVENT_QUEUE, 8));
    try (DeviceArray array = driver.array()) {
      array.waitOn(PretendedOpencl.stream());
      List<String> expected = new ArrayList<>(asked);
      expected.add(text("clFlush", PRODUCER));
      expected.add(barrier);
      assertEquals(expected, driver.take());

      driver.properties.put(OF_EVENT_QUEUE, 0L); // of a user event
      array.waitOn(PretendedOpencl.stream());
      expected = new ArrayList<>(asked);
      expected.add(barrier);
      assertEquals(expected, driver.take());

      driver.properties.put(OF_EVENT_QUEUE, PRODUCER);
      for (String name :
          List.of(
              "clGetEventInfo",
              "clGetCommandQueueInfo",
              "clFlush",
              "clEnqueueBarrierWithWaitList")) {
        driver.results.put(name, -5);
        assertError(
            EIO,
            "OpenCL: " + name + " failed with CL_OUT_OF_RESOURCES (-5)",
            () -> array.waitOn(PretendedOpencl.stream()));
        driver.results.clear();
      }
      driver.take();

      driver.properties.put(OF_QUEUE_CONTEXT, 0x50L);
      assertError(
          EINVAL,
          "wait_on: cl_context of the queue differs from the event's; hint: pass a queue of the"
              + " event's context, or call synchronize",
          () -> array.waitOn(PretendedOpencl.stream()));
      assertEquals(asked.subList(0, 2), driver.take());
      assertError(
          EINVAL,
          "stream is NULL: expected a cl_command_queue, because OpenCL has no default queue",
          () -> array.waitOn(DeviceStream.of(DeviceType.OPENCL, 0)));
      assertEquals(List.of(), driver.take());
    }
  }

  @Test
  void anExportEnqueuesAMarker() {
    Copy.run(this, "export");
  }

  void export() {
    PretendedOpencl driver = new PretendedOpencl();
    String marker = text("clEnqueueMarkerWithWaitList", QUEUE, 0, 0);
    String flush = text("clFlush", QUEUE);
    String release = text("clReleaseEvent", EVENT);
    DeviceArray array = new Releases().array(DeviceType.OPENCL);
    int allocations = Counting.live();
    array.exportWithEvent(PretendedOpencl.stream());
    assertEquals(EVENT, new Pointer(array.syncEvent()).getLong(0));
    assertEquals(List.of(marker, flush), driver.take());
    array.close();
    assertEquals(List.of(release), driver.take());

    DeviceArray other = new Releases().array(DeviceType.OPENCL);
    driver.results.put("clFlush", -5);
    assertError(
        EIO,
        "OpenCL: clFlush failed with CL_OUT_OF_RESOURCES (-5)",
        () -> other.exportWithEvent(PretendedOpencl.stream()));
    assertEquals(List.of(marker, flush, release), driver.take());
    driver.results.put("clEnqueueMarkerWithWaitList", -6);
    assertError(
        EIO,
        "OpenCL: clEnqueueMarkerWithWaitList failed with CL_OUT_OF_HOST_MEMORY (-6)",
        () -> other.exportWithEvent(PretendedOpencl.stream()));
    assertEquals(List.of(marker), driver.take()); // there is no event
    assertError(
        EINVAL,
        "stream is NULL: expected a cl_command_queue, because OpenCL has no default queue",
        () -> other.exportWithEvent(DeviceStream.of(DeviceType.OPENCL, 0)));
    assertEquals(List.of(), driver.take());
    assertEquals(0, other.syncEvent());
    other.close();
    assertEquals(allocations, Counting.live());
  }

  @Test
  void anArrayIsReleasedWhenItsEventHasPassed() {
    Copy.run(this, "releaseAfter");
  }

  void releaseAfter() {
    PretendedOpencl driver = new PretendedOpencl();
    // Done, and a command that has failed: nothing of it can still run.
    for (long last : new long[] {0, -5, -9999}) {
      driver.properties.put(OF_EVENT_STATE, 3L);
      Releases releases = new Releases();
      releases.array(DeviceType.OPENCL).releaseAfter(PretendedOpencl.stream());
      assertEquals(text("clEnqueueMarkerWithWaitList", QUEUE, 0, 0), driver.take().get(0));
      for (long state = 2; state > 0; state--) {
        awaitQueries(driver, 3);
        releases.assertCount(0);
        driver.properties.put(OF_EVENT_STATE, state);
      }
      assertEquals(1, DeviceArray.pendingReleases().pending());
      driver.properties.put(OF_EVENT_STATE, last);
      releases.waitFor(1);
      List<String> calls = driver.take();
      assertTrue(calls.contains(text("clReleaseEvent", EVENT)));
      // Other commands of the queue may still run.
      int finished = calls.indexOf(text("clFinish", PRODUCER));
      assertEquals(
          last != 0, finished >= 0 && finished < calls.indexOf(text("clReleaseEvent", EVENT)));
      assertEquals("pending 0, refused 0: ", DeviceArray.pendingReleases().toString());
    }
  }

  /** The first operation, which has no memory for an event, loads the library to wait. */
  @Test
  void releaseAfterWithoutMemoryWaitsForTheQueue() {
    Copy.run(this, "finish");
  }

  void finish() {
    PretendedOpencl driver = new PretendedOpencl();
    Releases releases = new Releases();
    DeviceArray array = releases.array(DeviceType.OPENCL);
    Counting.failAt(1);
    array.releaseAfter(PretendedOpencl.stream());
    releases.assertCount(1);
    assertEquals(0, Counting.failAt(0));
    assertEquals(List.of(text("clFinish", QUEUE)), driver.take());
  }

  private static void awaitQueries(PretendedOpencl driver, int count) {
    driver.take();
    while (driver.queries() < count) {
      Releases.pause();
    }
  }

  @Test
  void anArrayStaysWhileTheDriverRefuses() {
    Copy.run(this, "refuse");
  }

  void refuse() {
    PretendedOpencl driver = new PretendedOpencl();
    driver.results.put("clGetEventInfo", -6);
    Releases releases = new Releases();
    releases.array(DeviceType.OPENCL).releaseAfter(PretendedOpencl.stream());
    awaitQueries(driver, 6);
    releases.assertCount(0);
    String text = "OpenCL: clGetEventInfo failed with CL_OUT_OF_HOST_MEMORY (-6)";
    PendingReleases counts = DeviceArray.pendingReleases();
    assertEquals("pending 1, refused 1: " + text, counts.toString());
    driver.properties.put(OF_EVENT_STATE, 3L);
    driver.results.clear();
    awaitQueries(driver, 2);
    assertEquals("pending 1, refused 0: " + text, DeviceArray.pendingReleases().toString());
    driver.properties.put(OF_EVENT_STATE, 0L);
    releases.waitFor(1);
    assertEquals("pending 0, refused 0: " + text, DeviceArray.pendingReleases().toString());
  }
}
