// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.PretendedCuda.CREATED;
import static io.github.fletching.testing.suite.PretendedCuda.PRIMARY;
import static io.github.fletching.testing.suite.Releases.assertError;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.OnCapture;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.Counting;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Every call of CUDA that an operation makes, on a driver that is written in Java. */
@Timeout(120)
public abstract class PretendedCudaSuite {
  private static final int EIO = 5;
  private static final int EINVAL = 22;
  static final String BEGIN = "Init 0, ThreadExchangeStreamCaptureMode 2, ";
  static final String END = ", ThreadExchangeStreamCaptureMode 0";
  private static final String HINT =
      "; hint: check that stream and event are alive, and that sync_event is the address of the"
          + " event's handle, not the handle";

  /** The primary context is made current for an operation. */
  static final String ENTER =
      "CtxGetCurrent, DeviceGet 3, DevicePrimaryCtxGetState 3, DevicePrimaryCtxRetain 3,"
          + " CtxGetCurrent, CtxPushCurrent_v2 d, ";

  static final String LEAVE = ", CtxGetCurrent, CtxPopCurrent_v2, DevicePrimaryCtxRelease_v2 3";
  private static final String RECORD =
      "StreamIsCapturing 100000005, CtxGetId %s, CtxGetDevice, DevicePrimaryCtxGetState 3,"
          + " %sEventCreate 3, EventRecord e 100000005";
  private static final String IS_PRIMARY =
      "DevicePrimaryCtxRetain 3, DevicePrimaryCtxRelease_v2 3, ";

  // --- Waits

  @Test
  void aWaitOfTheHostNeedsAContext() {
    Copy.run(this, "waitOfTheHost");
  }

  void waitOfTheHost() {
    PretendedCuda driver = new PretendedCuda();
    try (DeviceArray array = driver.incoming()) {
      int live = Counting.live();
      driver.use(CREATED);
      array.synchronize();
      assertEquals(BEGIN + "CtxGetCurrent, EventSynchronize e" + END, driver.take());
      assertEquals("c 0", driver.left());
      driver.use(0);
      array.synchronize();
      assertEquals(BEGIN + ENTER + "EventSynchronize e" + LEAVE + END, driver.take());
      assertEquals("none 0", driver.left());

      driver.isActive = false;
      assertError(
          EINVAL,
          "CUDA context: none of device 3 is current on this thread, and its primary context is not"
              + " active; hint: make the array's context current",
          array::synchronize);
      assertEquals(
          BEGIN + "CtxGetCurrent, DeviceGet 3, DevicePrimaryCtxGetState 3" + END, driver.take());
      driver.use(CREATED);
      driver.returns("EventSynchronize", 400);
      assertError(
          EINVAL,
          "CUDA driver API: cuEventSynchronize failed with CUDA_ERROR_INVALID_HANDLE (400)" + HINT,
          array::synchronize);
      assertEquals("c 0", driver.left());
      assertEquals(live, Counting.live());
    }
  }

  @Test
  void aQueryIsDoneOrPending() {
    Copy.run(this, "query");
  }

  void query() {
    PretendedCuda driver = new PretendedCuda();
    try (DeviceArray array = driver.incoming()) {
      driver.use(0);
      assertTrue(array.isReady());
      assertEquals(BEGIN + "EventQuery e" + END, driver.take()); // in any context
      driver.returns("EventQuery", 600);
      assertFalse(array.isReady());
      driver.returns("EventQuery", 304);
      assertError(EIO, "CUDA driver API: cuEventQuery failed with 304", array::isReady);
      assertEquals("none 0", driver.left());
    }
  }

  @Test
  void aWaitOfAStreamEntersItsContext() {
    Copy.run(this, "waitOfAStream");
  }

  void waitOfAStream() {
    PretendedCuda driver = new PretendedCuda();
    String ask = "Init 0, StreamGetCtx 100000005, CtxGetCurrent, ";
    String wait = "StreamIsCapturing 100000005, StreamWaitEvent 100000005 e ";
    try (DeviceArray array = driver.incoming()) {
      int live = Counting.live();
      driver.use(PRIMARY);
      array.waitOn(PretendedCuda.stream());
      assertEquals(ask + wait + 0, driver.take());
      driver.use(CREATED);
      array.waitOn(PretendedCuda.stream());
      assertEquals(
          ask + "CtxPushCurrent_v2 d, " + wait + 0 + ", CtxGetCurrent, CtxPopCurrent_v2",
          driver.take());
      assertEquals("c 0", driver.left());

      driver.capture = 1;
      driver.use(PRIMARY);
      array.waitOn(PretendedCuda.stream().onCapture(OnCapture.EXTERNAL));
      assertEquals(ask + wait + 1, driver.take());
      for (int status : new int[] {1, 2}) {
        driver.capture = status;
        assertError(
            16,
            "wait_on: CUDA driver API: expected a stream whose work runs, got one that is being"
                + " captured into a graph"
                + (status == 1 ? "" : ", and whose capture is invalid and not ended")
                + "; hint: wait before the capture begins, or pass"
                + " stream.onCapture(OnCapture.EXTERNAL) for a wait at each launch of the graph",
            () -> array.waitOn(PretendedCuda.stream()));
        assertEquals(ask + "StreamIsCapturing 100000005", driver.take());
      }
      driver.returns("StreamIsCapturing", 906);
      assertError(
          16,
          "wait_on: CUDA driver API: expected a stream whose work runs, got the legacy default"
              + " stream while a stream that is ordered with it is being captured into a graph"
              + "; hint: wait before the capture begins, or pass"
              + " stream.onCapture(OnCapture.EXTERNAL) for a wait at each launch of the graph",
          () -> array.waitOn(PretendedCuda.stream().onCapture(OnCapture.EXTERNAL)));
      driver.take();
      driver.capture = 0;
      driver.use(0);
      array.waitOn(DeviceStream.of(DeviceType.CUDA, 1));
      assertEquals(
          "Init 0, " + ENTER + "StreamIsCapturing 1, StreamWaitEvent 1 e 0" + LEAVE, driver.take());
      assertEquals(live, Counting.live());
    }
  }

  // --- Records

  @Test
  void anExportNotesTheContext() {
    Copy.run(this, "export");
  }

  static DeviceArray exported(PretendedCuda driver, DeviceStream stream) {
    DeviceArray array = new Releases().array(DeviceType.CUDA, PretendedCuda.DEVICE, 0);
    array.exportWithEvent(stream);
    return array;
  }

  void export() {
    PretendedCuda driver = new PretendedCuda();
    String ask = BEGIN + "StreamGetCtx 100000005, CtxGetCurrent, ";
    driver.use(PRIMARY);
    exported(driver, PretendedCuda.stream()).close();
    int live = Counting.live();
    assertEquals(
        ask + String.format(RECORD, "d", IS_PRIMARY) + END + destroyed("CtxGetId 0, "),
        driver.take());
    driver.ofStream = CREATED;
    exported(driver, PretendedCuda.stream()).close();
    String push = "CtxPushCurrent_v2 c, ";
    String record =
        String.format(RECORD, "c", IS_PRIMARY) + ", CtxGetCurrent, CtxPopCurrent_v2" + END;
    assertEquals(
        ask
            + push
            + record
            + destroyed(
                "CtxGetId 0, CtxGetId c, CtxGetCurrent, " + push,
                ", CtxGetCurrent, CtxPopCurrent_v2"),
        driver.take());
    driver.isActive = false;
    exported(driver, PretendedCuda.stream()).close();
    record = String.format(RECORD, "c", "") + ", CtxGetCurrent, CtxPopCurrent_v2" + END;
    assertEquals(
        ask
            + push
            + record
            + destroyed(
                "CtxGetId 0, CtxGetId c, CtxGetCurrent, " + push,
                ", CtxGetCurrent, CtxPopCurrent_v2"),
        driver.take());
    assertEquals("d 0", driver.left());

    // The default stream without a context: the one that is retained is the primary one.
    driver.isActive = true;
    driver.use(0);
    exported(driver, DeviceStream.of(DeviceType.CUDA, 2)).close();
    assertEquals(
        BEGIN
            + ENTER
            + "StreamIsCapturing 2, CtxGetId d, CtxGetDevice, EventCreate 3, EventRecord e 2"
            + LEAVE
            + END
            + destroyed(
                "CtxGetId 0, DevicePrimaryCtxGetState 3, DevicePrimaryCtxRetain 3, CtxGetId d,"
                    + " CtxGetCurrent, CtxPushCurrent_v2 d, ",
                LEAVE),
        driver.take());
    assertEquals("none 0", driver.left());
    assertEquals(live, Counting.live());
  }

  static String destroyed(String enter, String... leave) {
    String all = enter + "EventDestroy_v2 e" + String.join("", leave);
    return ", ThreadExchangeStreamCaptureMode 2, " + all + END;
  }
}
