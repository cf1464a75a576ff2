// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.EBUSY;
import static io.github.fletching.abi.Errno.EINVAL;
import static io.github.fletching.abi.Errno.EIO;
import static io.github.fletching.testing.suite.Releases.assertFails;
import static io.github.fletching.testing.suite.Releases.awaited;
import static io.github.fletching.testing.suite.Releases.onThread;
import static io.github.fletching.testing.suite.StandinEventsTest.onBoth;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.OnCapture;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** CUDA contexts, HIP devices, and stream captures, on the stand-ins. */
@Timeout(120)
class StandinContextsTest {
  @Test
  void deviceIsSetOnlyIfNotCurrent() {
    Gpu hip = Gpu.hip("standin");
    Gpu.Gated gated = hip.new Gated();
    hip.recordEvent(gated.event, gated.producer);
    DeviceArray incoming = awaited(hip.type, gated.event);
    long calls = hip.calls("hipSetDevice");
    incoming.waitOn(gated.ofConsumer());
    assertEquals(calls, hip.calls("hipSetDevice"));
    hip.openDevice(1);
    calls = hip.calls("hipSetDevice");
    incoming.waitOn(gated.ofConsumer());
    assertEquals(calls + 2, hip.calls("hipSetDevice"));
    hip.setFault("hipSetDevice:2:" + hip.error); // switching back may report earlier work
    assertFails(EIO, () -> incoming.waitOn(gated.ofConsumer()), "hipSetDevice");
    hip.resetFaults();
    assertEquals(1, hip.current());
    hip.closeDevice(1);
    incoming.close();
    gated.end();
  }

  /** No context is current and the device has no active primary context: none must be created. */
  @Test
  void noContextIsCreated() {
    Gpu gpu = Gpu.cuda("standin");
    Gpu.Gated gated = gpu.new Gated();
    List<Long> before = gpu.alive();
    Map<Long, String> parts =
        Map.of(
            1L,
            "not active",
            -1L,
            "device_id: not a CUDA device ordinal",
            1L << 31,
            "expected 0 to 2147483647, got 2147483648; hint: ",
            (long) Integer.MAX_VALUE,
            "cuDeviceGet failed with ");
    parts.forEach(
        (device, part) -> {
          long address = Pointer.nativeValue(gated.event);
          try (DeviceArray array = new Releases().array(gpu.type, device, address)) {
            onThread(
                () -> {
                  int code = part.startsWith("cuDeviceGet") ? EIO : EINVAL;
                  assertFails(code, array::synchronize, part);
                  assertFails(code, () -> array.waitOn(gpu.stream(0)), part);
                  assertTrue(array.isReady()); // a query works in any context
                  assertEquals(0, gpu.current());
                });
          }
        });
    assertEquals(before, gpu.alive());
    gated.end();
  }

  /**
   * The last release of a primary context destroys the event. A reset also destroys it, even while
   * other references exist. After that, the handles of the event and of the context must not be
   * used, because they may be reused.
   */
  static void exportFromADestroyedContext(Gpu gpu, boolean isRecreated) {
    long stale = gpu.staleHandles();
    gpu.openDevice(0); // current when the event is destroyed
    gpu.openDevice(1);
    Releases releases = new Releases();
    DeviceArray array = releases.array(gpu.type);
    array.exportWithEvent(gpu.stream(gpu.makeStream()));
    if (isRecreated) {
      gpu.ok("cuDevicePrimaryCtxReset_v2", 1);
      gpu.openDevice(1);
      array.close();
      gpu.closeDevice(1);
    }
    gpu.closeDevice(1);
    array.close();
    releases.assertCount(1);
    gpu.closeDevice(0);
    assertEquals(stale, gpu.staleHandles());
  }

  @Test
  void eventsOfDestroyedContextAreNotUsed() {
    Gpu gpu = Gpu.cuda("standin");
    exportFromADestroyedContext(gpu, false);
    exportFromADestroyedContext(gpu, true);

    // During its query the reaper holds a reference, so that the context is not destroyed.
    long stale = gpu.staleHandles();
    gpu.openDevice(1);
    long stream = gpu.makeStream();
    Pointer word = gpu.makeWord(); // freed with the context
    word.setInt(0, 0);
    gpu.waitFor(stream, word);
    Releases releases = new Releases();
    releases.array(gpu.type).releaseAfter(gpu.stream(stream));
    gpu.closeDevice(1);
    releases.waitFor(1); // no call runs in the context after this
    assertEquals(stale, gpu.staleHandles());
  }

  /**
   * Destroys an event of the current context from another thread. Returns a stream of that context.
   */
  static long releaseOnAnotherThread(Gpu gpu) {
    long events = gpu.events();
    long stream = gpu.makeStream();
    DeviceArray array = new Releases().array(gpu.type);
    array.exportWithEvent(gpu.stream(stream));
    array.synchronize();
    onThread(array::close);
    assertEquals(events, gpu.events());
    return stream;
  }

  /** A created context is found again by its ID. */
  @Test
  void eventsOfCreatedContextAreDestroyed() {
    Gpu gpu = Gpu.cuda("standin");
    long context = gpu.get("cuCtxCreate_v4", 0, 0, 0);
    long stream = releaseOnAnotherThread(gpu);
    assertEquals(context, gpu.current());
    DeviceArray late = new Releases().array(gpu.type);
    late.exportWithEvent(gpu.stream(stream));
    long stale = gpu.staleHandles();
    gpu.ok("cuCtxDestroy_v2", context);
    late.close();
    assertTrue(gpu.staleHandles() <= stale + 1, "expected a query of the context at most");
  }

  /**
   * Two error codes mean that the context has destroyed the event; after any other code it leaks.
   */
  @Test
  void closeWithoutContextIdLeavesEventAlone() {
    Gpu gpu = Gpu.cuda("standin");
    long context = gpu.get("cuCtxCreate_v4", 0, 0, 0);
    long stream = gpu.makeStream();
    long destroyed = gpu.calls("cuEventDestroy");
    for (int code : new int[] {709, 201, 304}) {
      DeviceArray array = new Releases().array(gpu.type);
      array.exportWithEvent(gpu.stream(stream));
      long leaked = DeviceArray.pendingReleases().leakedEvents();
      gpu.setFault("cuCtxGetId:*:" + code);
      onThread(array::close);
      gpu.resetFaults();
      assertEquals(leaked + (code == 304 ? 1 : 0), DeviceArray.pendingReleases().leakedEvents());
    }
    assertEquals(destroyed, gpu.calls("cuEventDestroy"));
    gpu.destroyStream(stream);
    gpu.ok("cuCtxDestroy_v2", context);
  }

  /** A callback may leave another context current, or pop the context it runs in. */
  @Test
  void releaseAfterPopsOnlyItsOwnContext() {
    Gpu gpu = Gpu.cuda("standin");
    Gpu.Gated gated = gpu.new Gated();
    AtomicLong pops = new AtomicLong();
    List<Runnable> changes = List.of(() -> gpu.openDevice(1), () -> gpu.get("cuCtxPopCurrent_v2"));
    for (Runnable change : changes) {
      Releases releases =
          new Releases(
              () -> {
                change.run();
                pops.set(gpu.calls("cuCtxPopCurrent"));
              });
      releases.array(gpu.type).releaseAfter(gated.ofProducer());
      releases.waitFor(1);
      gpu.settleReleases();
      assertEquals(pops.get(), gpu.calls("cuCtxPopCurrent"));
    }
    gpu.ok("cuDevicePrimaryCtxRelease_v2", 1);
    gated.end();
  }

  /** Only a created stream, whose handle may be any address, is queried for its device. */
  @Test
  void waitOnDefaultStreamDoesNotQueryItsDevice() {
    onBoth(
        (gpu, gated) -> {
          String query = gpu.isCuda ? "cuStreamGetCtx" : "hipGetStreamDeviceId";
          DeviceArray incoming = awaited(gpu.type, gated.event);
          long queries = gpu.calls(query);
          for (long handle = 0; handle < 3; handle++) {
            incoming.waitOn(gpu.stream(handle));
          }
          assertEquals(queries, gpu.calls(query));
          for (long handle : new long[] {3, 1L << 63}) {
            assertFails(
                EINVAL,
                () -> incoming.waitOn(gpu.stream(handle)),
                query + " failed with ",
                "hint: check that ");
          }
          assertEquals(queries + 2, gpu.calls(query));
          incoming.close();
        });
  }

  // --- Captures

  @Test
  void captureStaysValid() {
    onBoth(
        (gpu, gated) -> {
          long captured = gpu.makeStream();
          Pointer memory = gpu.makeWord();
          DeviceArray array = new Releases().array(gpu.type);
          array.exportWithEvent(gated.ofConsumer());
          gated.shut();
          Releases behind = new Releases();
          behind.array(gpu.type).releaseAfter(gated.ofProducer());
          gpu.beginCapture(captured);
          Runnable ask =
              () -> {
                array.synchronize();
                assertTrue(array.isReady());
              };
          ask.run();
          onThread(ask);
          // An event is created, recorded and destroyed, while the reaper queries another event.
          DeviceArray second = new Releases().array(gpu.type);
          second.exportWithEvent(gated.ofConsumer());
          second.close();
          Releases free = new Releases();
          free.array(gpu.type).releaseAfter(gated.ofConsumer());
          free.waitFor(1);
          behind.assertCount(0);
          gpu.destroyGraph(gpu.endCapture(captured));
          // A callback may free device memory, which the driver considers unsafe.
          Releases freeing =
              new Releases(
                  () -> {
                    gpu.openDevice(0);
                    gpu.freeWord(memory);
                    gpu.closeDevice(0);
                  });
          gpu.beginCapture(captured);
          freeing.array(gpu.type).releaseAfter(gated.ofProducer());
          gated.open();
          freeing.waitFor(1);
          behind.waitFor(1);
          gpu.destroyGraph(gpu.endCapture(captured));
          array.close();
          gpu.destroyStream(captured);
        });
  }

  @Test
  void rejectsInvalidCapture() {
    onBoth(
        (gpu, gated) -> {
          DeviceArray incoming = awaited(gpu.type, gated.event);
          gpu.beginCapture(gated.consumer);
          // An unsafe call fails and invalidates the capture.
          assertNotEquals(0, (int) gpu.call(gpu.query, gated.event.getLong(0)));
          for (OnCapture choice : OnCapture.values()) {
            assertFails(
                EBUSY,
                () -> incoming.waitOn(gated.ofConsumer().onCapture(choice)),
                "whose capture is invalid and not ended");
          }
          gpu.abandonCapture(gated.consumer);
          incoming.close();
        });
  }

  /** The legacy default stream would depend on the captured stream. */
  @Test
  void rejectsLegacyStreamDuringCapture() {
    onBoth(
        (gpu, gated) -> {
          long blocking = gpu.makeStream(true);
          DeviceArray incoming = awaited(gpu.type, gated.event);
          gpu.beginCapture(blocking);
          assertFails(
              EBUSY,
              () -> incoming.waitOn(gpu.stream(0)),
              "the legacy default stream",
              "hint: wait before");
          gpu.destroyGraph(gpu.endCapture(blocking));
          incoming.waitOn(gpu.stream(0));
          incoming.close();
          gpu.destroyStream(blocking);
        });
  }

  @Test
  void graphWaitsAndRecordsAtEachLaunch() {
    onBoth(
        (gpu, gated) -> {
          long captured = gpu.makeStream();
          DeviceArray incoming = awaited(gpu.type, gated.event);
          DeviceStream stream = gpu.stream(captured).onCapture(OnCapture.EXTERNAL);
          DeviceArray array = new Releases().array(gpu.type);
          gpu.beginCapture(captured);
          incoming.waitOn(stream);
          array.exportWithEvent(stream);
          long graph = gpu.endCapture(captured);
          long executable = gpu.instantiate(graph);
          gpu.destroyGraph(graph);
          assertTrue(array.isReady()); // the event has not been recorded yet
          gated.shut();
          gpu.recordEvent(gated.event, gated.producer);
          gpu.launch(executable, captured);
          assertFalse(array.isReady());
          array.waitOn(gated.ofConsumer());
          assertTrue(gated.isBlocked(gated.consumer));
          gated.open();
          array.synchronize();
          gpu.synchronizeStream(captured);
          gpu.destroyExecutable(executable);
          gpu.synchronizeStream(gated.consumer);
          incoming.close();
          array.close();
          gpu.destroyStream(captured);
        });
  }
}
