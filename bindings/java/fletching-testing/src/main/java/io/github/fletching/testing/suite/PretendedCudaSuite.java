// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.PretendedCuda.CREATED;
import static io.github.fletching.testing.suite.PretendedCuda.PRIMARY;
import static io.github.fletching.testing.suite.Releases.errorOf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.FletchingException;
import io.github.fletching.OnCapture;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.Counting;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Every call of CUDA that an operation makes, on a driver that is written in Java. */
@Timeout(20)
public abstract class PretendedCudaSuite {
  private static final int EIO = 5;
  private static final int EINVAL = 22;
  private static final String BEGIN = "Init 0, ThreadExchangeStreamCaptureMode 2, ";
  private static final String END = ", ThreadExchangeStreamCaptureMode 0";
  private static final String HINT =
      "; hint: check that stream and event are alive, and that sync_event is the address of the"
          + " event's handle, not the handle";

  /** The primary context is made current for an operation. */
  private static final String ENTER =
      "CtxGetCurrent, DeviceGet 3, DevicePrimaryCtxGetState 3, DevicePrimaryCtxRetain 3,"
          + " CtxGetCurrent, CtxPushCurrent_v2 d, ";

  private static final String LEAVE = ", CtxPopCurrent_v2, DevicePrimaryCtxRelease_v2 3";
  private static final String RECORD =
      "StreamIsCapturing 100000005, CtxGetId %s, CtxGetDevice, DevicePrimaryCtxGetState 3,"
          + " %sEventCreate 2, EventRecord e 100000005";
  private static final String IS_PRIMARY =
      "DevicePrimaryCtxRetain 3, DevicePrimaryCtxRelease_v2 3, ";

  private static void assertFails(int code, String text, Runnable operation) {
    FletchingException error = errorOf(operation);
    assertEquals(text, error == null ? "no error" : error.getMessage());
    assertEquals(code, error.errno());
  }

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
      assertFails(
          EINVAL,
          "CUDA context: none is current on this thread, and the primary context of device 3 is not"
              + " active; hint: make the array's context current",
          array::synchronize);
      assertEquals(
          BEGIN + "CtxGetCurrent, DeviceGet 3, DevicePrimaryCtxGetState 3" + END, driver.take());
      driver.use(CREATED);
      driver.returns("EventSynchronize", 400);
      assertFails(
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
      assertEquals(BEGIN + ENTER + "EventQuery e" + LEAVE + END, driver.take());
      driver.returns("EventQuery", 600);
      assertFalse(array.isReady());
      driver.returns("EventQuery", 304);
      assertFails(EIO, "CUDA driver API: cuEventQuery failed with 304", array::isReady);
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
      assertEquals(ask + "CtxPushCurrent_v2 d, " + wait + 0 + ", CtxPopCurrent_v2", driver.take());
      assertEquals("c 0", driver.left());

      driver.capture = 1;
      driver.use(PRIMARY);
      array.waitOn(PretendedCuda.stream().onCapture(OnCapture.EXTERNAL));
      assertEquals(ask + wait + 1, driver.take());
      for (int status : new int[] {1, 2}) {
        driver.capture = status;
        assertFails(
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
      assertFails(
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

  private static DeviceArray exported(PretendedCuda driver, DeviceStream stream) {
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
    String record = String.format(RECORD, "c", IS_PRIMARY) + ", CtxPopCurrent_v2" + END;
    assertEquals(
        ask
            + push
            + record
            + destroyed("CtxGetId 0, CtxGetId c, CtxGetCurrent, " + push, ", CtxPopCurrent_v2"),
        driver.take());
    driver.isActive = false;
    exported(driver, PretendedCuda.stream()).close();
    record = String.format(RECORD, "c", "") + ", CtxPopCurrent_v2" + END;
    assertEquals(
        ask
            + push
            + record
            + destroyed("CtxGetId 0, CtxGetId c, CtxGetCurrent, " + push, ", CtxPopCurrent_v2"),
        driver.take());
    assertEquals("d 0", driver.left());

    // The default stream without a context: the one that is retained is the primary one.
    driver.isActive = true;
    driver.use(0);
    exported(driver, DeviceStream.of(DeviceType.CUDA, 2)).close();
    assertEquals(
        BEGIN
            + ENTER
            + "StreamIsCapturing 2, CtxGetId d, CtxGetDevice, EventCreate 2, EventRecord e 2"
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

  private static String destroyed(String enter, String... leave) {
    String all = enter + "EventDestroy_v2 e" + String.join("", leave);
    return ", ThreadExchangeStreamCaptureMode 2, " + all + END;
  }

  /** An event that was destroyed with its context is not used, nor its context. */
  @Test
  void anEventIsDestroyedWhereItsContextIs() {
    Copy.run(this, "close");
  }

  void close() {
    PretendedCuda driver = new PretendedCuda();
    String begin = "ThreadExchangeStreamCaptureMode 2, CtxGetId 0";
    driver.use(CREATED);
    DeviceArray inactive = exported(driver, PretendedCuda.stream());
    DeviceArray recreated = exported(driver, PretendedCuda.stream());
    driver.ofStream = CREATED;
    DeviceArray destroyed = exported(driver, PretendedCuda.stream());
    DeviceArray invalid = exported(driver, PretendedCuda.stream());
    DeviceArray another = exported(driver, PretendedCuda.stream());
    DeviceArray unknown = exported(driver, PretendedCuda.stream());
    DeviceArray second = exported(driver, PretendedCuda.stream());
    driver.take();
    driver.use(0);

    driver.isActive = false;
    inactive.close();
    assertEquals(begin + ", DevicePrimaryCtxGetState 3" + END, driver.take());
    driver.isActive = true;
    driver.numbers.put(PRIMARY, 72L);
    recreated.close();
    assertEquals(
        begin
            + ", DevicePrimaryCtxGetState 3, DevicePrimaryCtxRetain 3, CtxGetId d,"
            + " DevicePrimaryCtxRelease_v2 3"
            + END,
        driver.take());
    driver.returns("CtxGetId", 0, 709);
    destroyed.close();
    assertEquals(begin + ", CtxGetId c" + END, driver.take());
    driver.returns("CtxGetId", 0, 201);
    invalid.close();
    assertEquals(begin + ", CtxGetId c" + END, driver.take());
    // Any other error says nothing: it is tried once more.
    driver.returns("CtxGetId", 0, 304, 0, 304);
    unknown.close();
    assertEquals(begin + ", CtxGetId c, CtxGetId 0, CtxGetId c" + END, driver.take());
    driver.returns("CtxGetId", 0, 304);
    second.close();
    assertEquals(
        begin
            + ", CtxGetId c, CtxGetId 0, CtxGetId c, CtxGetCurrent, CtxPushCurrent_v2 c,"
            + " EventDestroy_v2 e, CtxPopCurrent_v2"
            + END,
        driver.take());
    driver.numbers.put(CREATED, 73L);
    another.close();
    assertEquals(begin + ", CtxGetId c" + END, driver.take());
    assertEquals("none 0", driver.left());
  }

  /** What has failed is destroyed once, however the way back goes. */
  @Test
  void anEventIsDestroyedOnce() {
    Copy.run(this, "closeOnce");
  }

  void closeOnce() {
    PretendedCuda driver = new PretendedCuda();
    driver.ofStream = CREATED;
    driver.use(PRIMARY);
    for (String failing : List.of("EventDestroy_v2", "CtxPopCurrent_v2")) {
      DeviceArray array = exported(driver, PretendedCuda.stream());
      driver.take();
      driver.returns(failing, 719);
      array.close();
      String calls = driver.take();
      assertEquals(calls.indexOf("EventDestroy"), calls.lastIndexOf("EventDestroy"), calls);
      assertTrue(calls.contains("EventDestroy_v2 e, CtxPopCurrent_v2"), calls);
      assertEquals("d 0", driver.left());
    }
    // The mode that cannot be set does not keep the event alive.
    DeviceArray array = exported(driver, PretendedCuda.stream());
    driver.take();
    driver.returns("ThreadExchangeStreamCaptureMode", 304);
    array.close();
    assertTrue(driver.take().endsWith("EventDestroy_v2 e, CtxPopCurrent_v2"));
    // Nor is it left as it was set when the way back fails once.
    DeviceArray other = exported(driver, PretendedCuda.stream());
    driver.returns("ThreadExchangeStreamCaptureMode", 0, 304);
    other.close();
    assertEquals("d 0", driver.left());
  }

  @Test
  void theSecondFailureIsWithTheFirst() {
    Copy.run(this, "suppressed");
  }

  void suppressed() {
    PretendedCuda driver = new PretendedCuda();
    try (DeviceArray array = driver.incoming()) {
      driver.returns("CtxPopCurrent_v2", 719);
      driver.returns("DevicePrimaryCtxRelease_v2", 304);
      FletchingException error = errorOf(array::synchronize);
      assertEquals(
          "CUDA driver API: cuCtxPopCurrent_v2 failed with CUDA_ERROR_LAUNCH_FAILED (719)",
          error.getMessage());
      assertEquals(
          "CUDA driver API: cuDevicePrimaryCtxRelease_v2 failed with 304",
          error.getSuppressed()[0].getMessage());
      assertEquals("none 0", driver.left());
      driver.take();
      driver.returns("CtxPopCurrent_v2", 304); // and it was not popped
      assertFails(EIO, "CUDA driver API: cuCtxPopCurrent_v2 failed with 304", array::synchronize);
      assertEquals(
          BEGIN
              + ENTER
              + "EventSynchronize e, CtxPopCurrent_v2 failed, CtxGetCurrent, CtxPopCurrent_v2,"
              + " DevicePrimaryCtxRelease_v2 3"
              + END,
          driver.take());
      assertEquals("none 0", driver.left());
    }
  }

  // --- Releases

  @Test
  void aReleaseAsksWhereTheEventIs() {
    Copy.run(this, "releaseAfter");
  }

  private static Releases released(PretendedCuda driver) {
    Releases releases = new Releases();
    releases.array(DeviceType.CUDA).releaseAfter(PretendedCuda.stream());
    releases.waitFor(1);
    return releases;
  }

  void releaseAfter() {
    PretendedCuda driver = new PretendedCuda();
    driver.ofStream = CREATED;
    String find = "ThreadExchangeStreamCaptureMode 2, CtxGetId 0, CtxGetId c, ";
    String enter = find + "CtxGetCurrent, CtxPushCurrent_v2 c, ";
    String leave = ", CtxPopCurrent_v2" + END;
    String query = enter + "EventQuery e" + leave;
    String refused = enter + "EventQuery failed" + leave;
    String destroy = enter + "EventDestroy_v2 e" + leave;
    String text = "CUDA driver API: cuEventQuery failed with 304";

    driver.returns("EventQuery", 600, 304, 600);
    released(driver);
    String expected = String.join(", ", refused, refused, refused, query, destroy);
    assertTrue(driver.take().contains(expected));
    assertEquals("pending 0, refused 0: " + text, DeviceArray.pendingReleases().toString());

    driver.returns("EventQuery", 700); // nothing of the context can still run
    released(driver);
    assertTrue(driver.take().contains(refused + ", " + destroy));

    // The context was destroyed, and the event with it.
    driver.returns("CtxGetId", 0, 0, 709, 0, 709);
    released(driver);
    String calls = driver.take();
    String gone = "ThreadExchangeStreamCaptureMode 2, CtxGetId 0, CtxGetId c" + END;
    assertTrue(calls.contains(gone + ", " + gone), calls);
    assertFalse(calls.contains("EventQuery"), calls);
    assertFalse(calls.contains("EventDestroy"), calls);

    // An error says nothing, unless nothing of the context can still run.
    driver.returns("CtxGetId", 0, 0, 304, 0, 700);
    released(driver);
    calls = driver.take();
    assertTrue(calls.contains(gone + ", " + gone + ", " + destroy), calls);
    assertEquals(
        "pending 0, refused 0: CUDA driver API: cuCtxGetId failed with 304",
        DeviceArray.pendingReleases().toString());

    // It has passed, however the mode is left; a context that is not left is an error.
    driver.returns("ThreadExchangeStreamCaptureMode", 0, 0, 0, 304);
    released(driver);
    driver.returns("CtxPopCurrent_v2", 0, 304);
    released(driver);
    assertEquals(
        "pending 0, refused 0: CUDA driver API: cuCtxPopCurrent_v2 failed with 304",
        DeviceArray.pendingReleases().toString());
  }

  /** C has moved the array out while its event was recorded: it is another owner's. */
  @Test
  void anArrayThatIsMovedOutIsNotTaken() {
    Copy.run(this, "moveOut");
  }

  void moveOut() {
    PretendedCuda driver = new PretendedCuda();
    driver.use(PRIMARY);
    released(driver);
    driver.take();
    int live = Counting.live();
    Releases releases = new Releases();
    DeviceArray array = releases.array(DeviceType.CUDA);
    Raw there = Raw.array();
    driver.onRecord = () -> Raw.arrayAt(array.address()).move(there);
    assertThrows(IllegalStateException.class, () -> array.releaseAfter(PretendedCuda.stream()));
    assertTrue(driver.take().endsWith(destroyed("CtxGetId 0, ").substring(2)));
    assertEquals(0, DeviceArray.pendingReleases().pending());
    releases.assertCount(0);
    array.close();
    there.release();
    releases.assertCount(1);
    assertEquals(live, Counting.live());
  }
}
