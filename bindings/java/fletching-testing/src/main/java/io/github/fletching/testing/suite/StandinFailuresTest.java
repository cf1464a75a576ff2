// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.EIO;
import static io.github.fletching.testing.suite.Releases.assertFails;
import static io.github.fletching.testing.suite.Releases.awaited;
import static io.github.fletching.testing.suite.Releases.errorOf;
import static io.github.fletching.testing.suite.Releases.onThread;
import static io.github.fletching.testing.suite.StandinEventsTest.onBoth;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.FletchingException;
import io.github.fletching.OnCapture;
import io.github.fletching.PendingReleases;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Every CUDA and HIP call fails once, on the stand-ins. */
@Timeout(120)
class StandinFailuresTest {
  // From this index on, the operations also release an array, and a release cannot report an error.
  private static final int RELEASING = 4;

  /** Runs every operation of a test with one failing runtime call. */
  private static final class FaultInjector {
    private final Gpu gpu;
    private final List<Runnable> operations;
    final Set<String> failed = new HashSet<>(); // names of functions

    FaultInjector(Gpu gpu, Runnable... operations) {
      this.gpu = gpu;
      this.operations = List.of(operations);
    }

    void run(String function, int nth) {
      for (int i = 0; i < operations.size(); i++) {
        String fault = function + ":" + nth + ":" + gpu.error;
        String where = fault + " of operation " + i;
        long current = gpu.current();
        List<Long> alive = gpu.alive();
        long calls = gpu.calls(function);
        long stale = gpu.staleHandles();
        gpu.setFault(fault);
        FletchingException error = errorOf(operations.get(i));
        boolean hasFailed = gpu.calls(function) >= calls + nth;
        gpu.resetFaults();
        assertEquals(current, gpu.current(), where);
        assertEquals(alive, gpu.alive(), where);
        assertEquals(stale, gpu.staleHandles(), where + " destroys something twice");
        assertEquals(0, gpu.call("FletchingStandinRelaxedThreads"), where + " leaves the mode");
        if (error == null) {
          assertTrue(!hasFailed || i >= RELEASING, where + " is lost");
          continue;
        }
        failed.add(function);
        String text = error.getMessage();
        boolean numberAlone = function.equals("hipGetStreamDeviceId"); // a code below 0
        assertTrue(hasFailed && text.contains(function), where + ": " + text);
        assertTrue(numberAlone || text.contains(gpu.error), where + ": " + text);
      }
    }
  }

  @Test
  void everyRuntimeFailureThrows() {
    onBoth(
        (gpu, gated) -> {
          gpu.recordEvent(gated.event, gated.producer);
          gpu.synchronizeStream(gated.producer);
          DeviceArray array = awaited(gpu.type, gated.event);
          DeviceStream stream = gated.ofConsumer();
          FaultInjector failing =
              new FaultInjector(
                  gpu,
                  array::synchronize,
                  () -> array.waitOn(stream),
                  () -> array.waitOn(gpu.stream(0)),
                  array::isReady,
                  () -> Releases.export(stream),
                  () -> releaseAfter(gpu, stream));
          failing.operations.forEach(Runnable::run); // so that called() lists all functions
          for (String function : gpu.called()) {
            for (int nth = 1; nth <= 2; nth++) {
              int call = nth;
              failing.run(function, call);
              onThread(() -> failing.run(function, call));
            }
          }
          Set<String> expected = Set.of(gpu.query, gpu.record, gpu.synchronize, gpu.exchangeMode);
          assertTrue(
              failing.failed.containsAll(expected), "too few functions failed: " + failing.failed);
          array.close();
        });
  }

  /** Waits for the releasing thread, so that the next fault does not affect its calls. */
  private static void releaseAfter(Gpu gpu, DeviceStream stream) {
    try {
      Releases.releaseAfter(stream);
    } finally {
      gpu.settleReleases();
    }
  }

  /** A second failure during the handling of the first is not reported as the cause. */
  @Test
  void firstFailureIsReported() {
    Gpu gpu = Gpu.cuda("standin");
    Gpu.Gated gated = gpu.new Gated();
    DeviceArray array = awaited(gpu.type, gated.event);
    onThread(
        () -> { // needs the primary context
          gpu.setFault("cuCtxPushCurrent:1:719,cuDevicePrimaryCtxRelease:1:304");
          assertFails(EIO, array::synchronize, "cuCtxPushCurrent", "719");
          gpu.setFault("cuCtxPopCurrent:1:719,cuDevicePrimaryCtxRelease:1:304");
          FletchingException error = errorOf(array::synchronize);
          assertTrue(error.getMessage().contains("cuCtxPopCurrent_v2 failed with "));
          String second = error.getSuppressed()[0].getMessage();
          assertTrue(second.contains("cuDevicePrimaryCtxRelease_v2 failed with "), second);
          gpu.resetFaults();
          assertEquals(0, gpu.current());
        });
    array.close();
    gated.end();
  }

  /** By then the query has succeeded. */
  @Test
  void errorOfPopAfterQueryIsIgnored() {
    Gpu gpu = Gpu.cuda("standin");
    Gpu.Gated gated = gpu.new Gated();
    String refusal = DeviceArray.pendingReleases().lastRefusal();
    gpu.setFault("cuCtxPopCurrent:1:719");
    Releases.releaseAfter(gated.ofProducer());
    gpu.settleReleases();
    gpu.resetFaults();
    assertEquals(refusal, DeviceArray.pendingReleases().lastRefusal());
    gated.end();
  }

  @Test
  void failedVersionKeepsCaptureValid() {
    Gpu gpu = Gpu.hip("standin");
    Gpu.Gated gated = gpu.new Gated();
    DeviceArray array = new Releases().array(gpu.type);
    gpu.beginCapture(gated.consumer);
    gpu.setFault("hipRuntimeGetVersion:1:" + gpu.error);
    assertFails(
        EIO,
        () -> array.exportWithEvent(gated.ofConsumer().onCapture(OnCapture.EXTERNAL)),
        "HIP runtime API: hipRuntimeGetVersion failed with " + gpu.error);
    gpu.resetFaults();
    gpu.destroyGraph(gpu.endCapture(gated.consumer));
    array.close();
    gated.end();
  }

  @Test
  void failedQueryIsRetried() {
    onBoth(
        gpu -> {
          Gpu.Gated gated = gpu.new Gated();
          gpu.setFault(gpu.query + ":*:900");
          Releases releases = new Releases();
          releases.array(gpu.type).releaseAfter(gated.ofConsumer());
          awaitCalls(gpu, gpu.query, 5);
          releases.assertCount(0);
          PendingReleases counts = DeviceArray.pendingReleases();
          assertEquals(1, counts.pending());
          assertEquals(1, counts.refused());
          assertTrue(counts.lastRefusal().contains(gpu.query), counts.toString());
          gpu.resetFaults();
          releases.waitFor(1);
          gated.end();
          counts = DeviceArray.pendingReleases();
          assertEquals(0, counts.pending() + counts.refused());
        });
  }

  @Test
  void arrayOfLostDeviceIsReleased() {
    onBoth(
        (gpu, gated) -> {
          gated.shut();
          for (String code : List.of("700", "719")) {
            Releases releases = new Releases();
            releases.array(gpu.type).releaseAfter(gated.ofProducer());
            gpu.setFault(gpu.query + ":1:" + code);
            releases.waitFor(1);
            gpu.resetFaults();
          }
        });
  }

  /** The call that checks the event's context reports the loss. */
  @Test
  void arrayOfLostContextIsReleased() {
    Gpu gpu = Gpu.cuda("standin");
    String function = "cuDevicePrimaryCtxGetState";
    Gpu.Gated gated = gpu.new Gated();
    gated.shut();
    Releases releases = new Releases();
    releases.array(gpu.type).releaseAfter(gated.ofProducer());
    gpu.setFault(function + ":*:304"); // unrelated to the context
    awaitCalls(gpu, function, 3);
    releases.assertCount(0);
    gpu.resetFaults();
    gpu.setFault(function + ":*:700");
    releases.waitFor(1);
    gpu.resetFaults();
    gated.open();
    gpu.destroyStream(gated.producer);
    gpu.destroyStream(gated.consumer);
    gpu.closeDevice(0); // also destroys the event
  }

  private static void awaitCalls(Gpu gpu, String function, int count) {
    long before = gpu.calls(function);
    while (gpu.calls(function) < before + count) {
      Releases.pause();
    }
  }

  @Test
  void keptArrayOfLostDeviceIsReleased() {
    onBoth(
        (gpu, gated) -> {
          Releases kept = new Releases();
          gpu.beginCapture(gated.producer);
          kept.array(gpu.type).releaseAfter(gated.ofProducer().onCapture(OnCapture.KEEP));
          gpu.setFault(gpu.isCapturing + ":*:1"); // unrelated to the device
          while (DeviceArray.pendingReleases().refused() == 0) {
            Releases.pause();
          }
          kept.assertCount(0);
          gpu.resetFaults();
          gpu.setFault(gpu.isCapturing + ":*:719");
          kept.waitFor(1);
          gpu.resetFaults();
          gpu.destroyGraph(gpu.endCapture(gated.producer));
        });
  }

  /** The vendor's functions for error names and descriptions may fail as well. */
  @Test
  void unnamedErrorShowsNumber() {
    Gpu gpu = Gpu.cuda("standin");
    Gpu.Gated gated = gpu.new Gated();
    DeviceArray array = awaited(gpu.type, gated.event);
    Map<Integer, String> ends =
        Map.of(304, "failed with 304", 719, "failed with CUDA_ERROR_LAUNCH_FAILED (719)");
    ends.forEach(
        (code, end) -> {
          gpu.setFault("cuCtxGetCurrent:1:" + code + ",cuGetErrorName:1:1,cuGetErrorString:1:1");
          FletchingException error = errorOf(array::synchronize);
          gpu.resetFaults();
          assertEquals("synchronize: CUDA driver API: cuCtxGetCurrent " + end, error.getMessage());
          assertEquals(EIO, error.errno());
        });
    array.close();
    gated.end();
  }

  /** The caller waits for the stream; an array that was deferred earlier is still released. */
  @Test
  void releaseAfterWithoutThreadReleases() {
    Child.run(this, "releaseWithoutThreads");
  }

  void releaseWithoutThreads() {
    Gpu gpu = Gpu.cuda("standin");
    Gpu.Gated gated = gpu.new Gated();
    DeviceStream stream = gated.ofProducer();
    Releases releases = new Releases();
    releases.array(gpu.type).releaseAfter(stream); // loads its classes
    releases.waitFor(1);
    awaitNoThread("fletching-release");
    DeviceArray array = releases.array(gpu.type);
    long events = gpu.events();
    ThreadLimit.run(
        () -> {
          array.releaseAfter(stream);
          releases.assertCount(2);
        });
    assertEquals(events, gpu.events());

    gated.shut();
    releases.array(gpu.type).releaseAfter(stream);
    ThreadLimit.run(
        () -> {
          gated.open();
          releases.waitFor(3);
        });
    gated.end();
  }

  private static void awaitNoThread(String name) {
    while (Thread.getAllStackTraces().keySet().stream().anyMatch(t -> t.getName().equals(name))) {
      Releases.pause();
    }
  }

  private static final class ThreadLimit {
    private static final int RLIMIT_AS = 9;
    private static final long SLACK = 256 << 10; // less than a thread's stack

    private final Memory before = new Memory(16); // struct rlimit
    private final CountDownLatch mayEnd = new CountDownLatch(1);

    /** Runs the body while no thread can be started. */
    static void run(Runnable body) {
      ThreadLimit limit = new ThreadLimit();
      try {
        limit.set();
        body.run();
      } finally {
        limit("setrlimit", limit.before);
        limit.mayEnd.countDown();
      }
    }

    private void set() {
      try {
        limit("getrlimit", before);
        Memory now = new Memory(16);
        now.setLong(0, pages() * 4096 + SLACK);
        now.setLong(8, before.getLong(8));
        limit("setrlimit", now);
        while (true) { // uses up the stacks of ended threads
          Thread thread = new Thread(this::await);
          thread.setDaemon(true);
          thread.start();
        }
      } catch (OutOfMemoryError e) {
        // expected
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    private void await() {
      try {
        mayEnd.await();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }

    private static long pages() throws IOException {
      return Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ")[0]);
    }

    private static void limit(String function, Memory limit) {
      Object[] arguments = {RLIMIT_AS, limit};
      assertEquals(0, NativeLibrary.getInstance("c").getFunction(function).invokeInt(arguments));
    }
  }
}
