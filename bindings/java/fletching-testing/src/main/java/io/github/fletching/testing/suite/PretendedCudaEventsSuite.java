// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.PretendedCuda.CREATED;
import static io.github.fletching.testing.suite.PretendedCuda.PRIMARY;
import static io.github.fletching.testing.suite.PretendedCudaSuite.BEGIN;
import static io.github.fletching.testing.suite.PretendedCudaSuite.END;
import static io.github.fletching.testing.suite.PretendedCudaSuite.ENTER;
import static io.github.fletching.testing.suite.PretendedCudaSuite.destroyed;
import static io.github.fletching.testing.suite.PretendedCudaSuite.exported;
import static io.github.fletching.testing.suite.Releases.assertError;
import static io.github.fletching.testing.suite.Releases.errorOf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.DeviceArray;
import io.github.fletching.FletchingException;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.Counting;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Where an event of CUDA is asked for and destroyed, on a driver that is written in Java. */
@Timeout(120)
public abstract class PretendedCudaEventsSuite {
  private static final int EIO = 5;

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
            + " EventDestroy_v2 e, CtxGetCurrent, CtxPopCurrent_v2"
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
      assertTrue(calls.contains("EventDestroy_v2 e, CtxGetCurrent, CtxPopCurrent_v2"), calls);
      assertEquals("d 0", driver.left());
    }
    // The mode that cannot be set does not keep the event alive.
    DeviceArray array = exported(driver, PretendedCuda.stream());
    driver.take();
    driver.returns("ThreadExchangeStreamCaptureMode", 304);
    array.close();
    assertTrue(driver.take().endsWith("EventDestroy_v2 e, CtxGetCurrent, CtxPopCurrent_v2"));
    // Nor is it left as it was set when the way back fails once.
    DeviceArray other = exported(driver, PretendedCuda.stream());
    driver.returns("ThreadExchangeStreamCaptureMode", 0, 304);
    other.close();
    assertEquals("d 0", driver.left());
  }

  /** A call may report an earlier error and have set the mode nonetheless. */
  @Test
  void modeIsRestoredAfterAnEarlierError() {
    Copy.run(this, "restoreMode");
  }

  void restoreMode() {
    PretendedCuda driver = new PretendedCuda();
    try (DeviceArray array = driver.incoming()) {
      for (Integer[] results : new Integer[][] {{719}, {0, 719}, {0, 304}}) {
        driver.returns("ThreadExchangeStreamCaptureMode", results);
        FletchingException error = errorOf(array::isReady);
        assertTrue(error.getMessage().contains("cuThreadExchangeStreamCaptureMode failed"));
        assertEquals("none 0", driver.left());
      }
    }
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
      assertError(EIO, "CUDA driver API: cuCtxPopCurrent_v2 failed with 304", array::synchronize);
      assertEquals(
          BEGIN
              + ENTER
              + "EventSynchronize e, CtxGetCurrent, CtxPopCurrent_v2 failed, CtxGetCurrent, CtxPopCurrent_v2,"
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

  private static void released(PretendedCuda driver) {
    Releases releases = new Releases();
    releases.array(DeviceType.CUDA).releaseAfter(PretendedCuda.stream());
    releases.waitFor(1);
    while (!driver.left().endsWith(" 0")) { // the thread that releases resets its mode
      Releases.pause();
    }
  }

  void releaseAfter() {
    PretendedCuda driver = new PretendedCuda();
    driver.ofStream = CREATED;
    String find = "ThreadExchangeStreamCaptureMode 2, CtxGetId 0, CtxGetId c, ";
    String enter = find + "CtxGetCurrent, CtxPushCurrent_v2 c, ";
    String leave = ", CtxGetCurrent, CtxPopCurrent_v2" + END;
    String query = enter + "EventQuery e" + leave;
    String refused = enter + "EventQuery failed" + leave;
    String relax = "ThreadExchangeStreamCaptureMode 2";
    String destroy =
        enter + relax + ", CtxGetId 0, EventDestroy_v2 e, " + relax + leave; // in its context
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
    driver.returns("CtxGetId", 0, 0, 709, 0, 709, 0, 709);
    released(driver);
    String calls = driver.take();
    String look = relax + ", CtxGetId 0, CtxGetId c";
    String gone = look + END;
    assertTrue(calls.contains(gone + ", " + look + ", " + look + ", " + relax + END), calls);
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

    // It has passed, however the mode and the context are left.
    driver.returns("ThreadExchangeStreamCaptureMode", 0, 0, 0, 304);
    released(driver);
    driver.returns("CtxPopCurrent_v2", 0, 304);
    released(driver);
    assertEquals(
        "pending 0, refused 0: CUDA driver API: cuCtxGetId failed with 304",
        DeviceArray.pendingReleases().toString());
  }

  /** C has moved the array out while its event was recorded: it is another owner's. */
  @Test
  void anArrayThatIsMovedOutIsNotReleased() {
    Copy.run(this, "moveOut");
  }

  void moveOut() {
    PretendedCuda driver = new PretendedCuda();
    driver.use(PRIMARY);
    exported(driver, PretendedCuda.stream()).close();
    driver.take();
    int live = Counting.live();
    Releases releases = new Releases();
    DeviceArray array = releases.array(DeviceType.CUDA);
    Raw there = Raw.array();
    long struct = array.address();
    driver.onRecord = () -> Raw.arrayAt(struct).move(there);
    array.releaseAfter(PretendedCuda.stream());
    while (DeviceArray.pendingReleases().pending() + DeviceArray.pendingReleases().running() > 0) {
      Releases.pause();
    }
    releases.assertCount(0);
    there.release();
    releases.assertCount(1);
    assertEquals(live, Counting.live());
  }

  // --- Failures

  /** Each call of an operation fails once: what was done before is undone, and nothing else. */
  @Test
  void whatWasDoneIsUndone() {
    Copy.run(this, "undo");
  }

  void undo() {
    PretendedCuda driver = new PretendedCuda();
    try (DeviceArray array = driver.incoming()) {
      failEach(driver, BEGIN, ENTER + "EventSynchronize e", END, array::synchronize);
      driver.use(CREATED);
      String wait = "StreamIsCapturing 100000005, StreamWaitEvent 100000005 e 0";
      failEach(
          driver,
          "Init 0, ",
          "StreamGetCtx 100000005, CtxGetCurrent, CtxPushCurrent_v2 d, " + wait,
          "",
          () -> array.waitOn(PretendedCuda.stream()));
    }
    try (DeviceArray array = new Releases().array(DeviceType.CUDA)) {
      failEach(
          driver,
          BEGIN,
          "StreamGetCtx 100000005, CtxGetCurrent, CtxPushCurrent_v2 d, StreamIsCapturing 100000005,"
              + " CtxGetId d, CtxGetDevice, DevicePrimaryCtxGetState 3, DevicePrimaryCtxRetain 3,"
              + " DevicePrimaryCtxRelease_v2 3, EventCreate 3",
          END,
          () -> array.exportWithEvent(PretendedCuda.stream()));
      assertEquals(0, array.syncEvent());
    }
  }

  private static void failEach(
      PretendedCuda driver, String begin, String calls, String end, Runnable operation) {
    String before = driver.left();
    List<String> all = List.of(calls.split(", "));
    for (int i = 0; i < all.size(); i++) {
      String function = all.get(i).split(" ")[0];
      boolean isSecond = all.subList(0, i).contains(all.get(i));
      driver.take();
      driver.returns(function, isSecond ? new Integer[] {0, 304} : new Integer[] {304});
      FletchingException error = errorOf(operation);
      driver.returns(function);
      String text = "CUDA driver API: cu" + function + " failed with 304";
      assertEquals(text, error == null ? "no error" : error.getMessage());
      List<String> done = all.subList(0, i);
      String failed = function.equals("CtxGetId") ? all.get(i) : function + " failed";
      String expected = begin + String.join(", ", done) + (i == 0 ? "" : ", ") + failed;
      expected += done.contains("CtxPushCurrent_v2 d") ? ", CtxGetCurrent, CtxPopCurrent_v2" : "";
      boolean isRetained =
          done.contains("DevicePrimaryCtxRetain 3") && !calls.contains("CtxRelease_v2");
      expected += isRetained ? ", DevicePrimaryCtxRelease_v2 3" : "";
      assertEquals(expected + end, driver.take());
      assertEquals(before, driver.left());
    }
  }
}
