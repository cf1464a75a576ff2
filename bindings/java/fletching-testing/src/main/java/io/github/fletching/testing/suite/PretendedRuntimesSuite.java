// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Releases.awaited;
import static io.github.fletching.testing.suite.Releases.errorOf;
import static io.github.fletching.testing.suite.Releases.onThread;
import static io.github.fletching.testing.suite.StandinEventsSuite.onBoth;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.FletchingException;
import io.github.fletching.OnCapture;
import io.github.fletching.testing.Counting;
import io.github.fletching.testing.Pretending;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** CUDA and HIP on the stand-ins, of which some functions are missing or written in Java. */
@Timeout(20)
public abstract class PretendedRuntimesSuite {
  private static final int EIO = 5;
  private static final int EINVAL = 22;
  private static final int ENOSYS = 38;
  private static final int ENOTSUP = 95;
  private static final int RELAXED = 2; // the mode
  private static final String VERSION = "hipRuntimeGetVersion";

  static void assertFails(int code, String text, Runnable operation) {
    FletchingException error = errorOf(operation);
    assertEquals(text, error == null ? "no error" : error.getMessage());
    assertEquals(code, error.errno());
  }

  // --- Missing functions

  @Test
  void anEventNeedsItsFunctions() {
    Copy.run(this, "withoutCreate");
    Copy.run(this, "withoutRecord");
    Copy.run(this, "withoutDestroy");
  }

  void withoutCreate() {
    exportWithout("cuEventCreate", "hipEventCreateWithFlags");
  }

  void withoutRecord() {
    exportWithout("cuEventRecord", "hipEventRecord");
  }

  void withoutDestroy() {
    exportWithout("cuEventDestroy_v2", "hipEventDestroy");
  }

  /** Nothing is made that could not be recorded or destroyed. */
  private static void exportWithout(String ofCuda, String ofHip) {
    Pretending.remove(ofCuda);
    Pretending.remove(ofHip);
    onBoth(
        (gpu, gated) -> {
          String text =
              gpu.isCuda
                  ? "CUDA driver API: libcuda.so.1 has no " + ofCuda
                  : "HIP runtime API: libamdhip64.so.7 has no " + ofHip;
          long made = gpu.calls("cuEventCreate") + gpu.calls("hipEventCreateWithFlags");
          DeviceArray array = new Releases().array(gpu.type);
          for (Runnable operation : producing(array, gated.ofProducer())) {
            assertFails(ENOSYS, text + "; hint: install a newer version", operation);
          }
          assertEquals(made, gpu.calls("cuEventCreate") + gpu.calls("hipEventCreateWithFlags"));
          assertEquals(0, array.syncEvent());
          array.close();
          gpu.recordEvent(gated.event, gated.producer);
          try (DeviceArray incoming = awaited(gpu.type, gated.event)) { // the others need none
            incoming.waitOn(gated.ofConsumer());
            incoming.synchronize();
            assertTrue(incoming.isReady());
          }
        });
  }

  private static List<Runnable> producing(DeviceArray array, DeviceStream stream) {
    return List.of(() -> array.exportWithEvent(stream), () -> array.releaseAfter(stream));
  }

  @Test
  void olderRuntimesKnowNoModes() {
    Copy.run(this, "withoutModes");
  }

  void withoutModes() {
    Gpu gpu = Gpu.hip("standin");
    Gpu.Gated gated = gpu.new Gated();
    Pretending.remove(gpu.exchangeMode);
    Pretending.remove("hipStreamIsCapturing");
    long exchanges = gpu.calls(gpu.exchangeMode);
    DeviceArray array = new Releases().array(gpu.type);
    array.exportWithEvent(gated.ofProducer());
    array.waitOn(gated.ofConsumer());
    array.synchronize();
    assertTrue(array.isReady());
    array.close();
    Releases.releaseAfter(gated.ofConsumer());
    assertEquals(exchanges, gpu.calls(gpu.exchangeMode));
    gated.end();
  }

  @Test
  void aDriverWithoutAnswersCapturesNothing() {
    Copy.run(this, "withoutAnswer");
  }

  void withoutAnswer() {
    Pretending.replace("cuStreamIsCapturing", (a, b, c, d, e) -> 0);
    Pretending.replace("hipStreamIsCapturing", (a, b, c, d, e) -> 0);
    onBoth(
        (gpu, gated) -> {
          gpu.openDevice(1); // what the cell has had before is not 0
          gpu.recordEvent(gated.event, gated.producer);
          try (DeviceArray incoming = awaited(gpu.type, gated.event)) {
            incoming.waitOn(gated.ofConsumer());
          }
          gpu.closeDevice(1);
        });
  }

  // --- External events

  @Test
  void cudaOf11HasExternalEvents() {
    Copy.run(this, "cudaOf10");
  }

  void cudaOf10() {
    Pretending.remove("cuEventRecordWithFlags");
    Gpu gpu = Gpu.cuda("standin");
    refuseExternal(
        gpu,
        "CUDA driver API: libcuda.so.1 has no cuEventRecordWithFlags; hint: install a newer"
            + " version (CUDA 11.1) for an event of a captured stream");
  }

  private static void refuseExternal(Gpu gpu, String text) {
    Gpu.Gated gated = gpu.new Gated();
    DeviceArray incoming = awaited(gpu.type, gated.event);
    DeviceArray array = new Releases().array(gpu.type);
    DeviceStream external = gated.ofConsumer().onCapture(OnCapture.EXTERNAL);
    incoming.waitOn(external); // nothing is captured
    gpu.beginCapture(gated.consumer);
    assertFails(ENOTSUP, text, () -> incoming.waitOn(external));
    assertFails(ENOTSUP, text, () -> array.exportWithEvent(external));
    gpu.destroyGraph(gpu.endCapture(gated.consumer));
    assertEquals(0, array.syncEvent());
    array.close();
    incoming.close();
    gated.end();
  }

  @Test
  void rocmOf7HasExternalEvents() {
    Copy.run(this, "rocmOf7");
    Copy.run(this, "rocmWithoutTheFunction");
  }

  void rocmOf7() {
    AtomicInteger version = new AtomicInteger();
    AtomicInteger code = new AtomicInteger();
    Pretending.replace(
        VERSION,
        (out, b, c, d, e) -> {
          new Pointer(out).setInt(0, version.get());
          return code.get();
        });
    Gpu gpu = Gpu.hip("standin");
    for (int old : new int[] {60_443_483, 69_999_999}) {
      version.set(old);
      refuseExternal(gpu, noExternalEvents(old));
    }
    int live = Counting.live();
    for (int enough : new int[] {70_000_000, 70_151_831}) {
      version.set(enough);
      captureExternal(gpu);
    }
    code.set(719);
    Gpu.Gated gated = gpu.new Gated();
    try (DeviceArray array = new Releases().array(gpu.type)) {
      gpu.beginCapture(gated.consumer);
      String error = gpu.error + " (719): ";
      FletchingException got =
          errorOf(() -> array.exportWithEvent(gated.ofConsumer().onCapture(OnCapture.EXTERNAL)));
      assertTrue(
          got.getMessage().startsWith("HIP runtime API: " + VERSION + " failed with " + error),
          got.getMessage());
      assertEquals(EIO, got.errno());
      gpu.destroyGraph(gpu.endCapture(gated.consumer));
    }
    gated.end();
    assertEquals(live, Counting.live());
  }

  void rocmWithoutTheFunction() {
    Pretending.remove("hipEventRecordWithFlags");
    Pretending.replace(
        VERSION,
        (out, b, c, d, e) -> {
          new Pointer(out).setInt(0, 80_000_000);
          return 0;
        });
    refuseExternal(Gpu.hip("standin"), noExternalEvents(80_000_000));
  }

  private static String noExternalEvents(int version) {
    return "HIP runtime API: no external events of graphs: expected ROCm 7.0 or later, got version "
        + version;
  }

  private static void captureExternal(Gpu gpu) {
    Gpu.Gated gated = gpu.new Gated();
    DeviceArray incoming = awaited(gpu.type, gated.event);
    DeviceArray array = new Releases().array(gpu.type);
    DeviceStream external = gated.ofConsumer().onCapture(OnCapture.EXTERNAL);
    gpu.beginCapture(gated.consumer);
    incoming.waitOn(external);
    long records = gpu.calls("hipEventRecordWithFlags");
    array.exportWithEvent(external);
    assertEquals(records + 1, gpu.calls("hipEventRecordWithFlags"));
    gpu.destroyGraph(gpu.endCapture(gated.consumer));
    array.close();
    incoming.close();
    gated.end();
  }

  // --- Streams

  @Test
  void theDefaultStreamsHaveNoDeviceOfTheirOwn() {
    Copy.run(this, "defaultStreams");
  }

  void defaultStreams() {
    List<String> waits = new ArrayList<>();
    AtomicInteger asked = new AtomicInteger();
    AtomicLong device = new AtomicLong();
    for (String name : List.of("cuStreamWaitEvent", "hipStreamWaitEvent")) {
      Pretending.replace(
          name,
          (stream, event, flags, d, e) -> {
            waits.add(Long.toHexString(stream) + " " + (int) flags);
            return 0;
          });
    }
    for (String name : List.of("cuStreamIsCapturing", "hipStreamIsCapturing")) {
      Pretending.replace(name, (stream, b, c, d, e) -> 0);
    }
    Pretending.replace(
        "cuStreamGetCtx",
        (stream, out, c, d, e) -> {
          asked.incrementAndGet();
          new Pointer(out).setLong(0, Gpu.cuda("standin").current());
          return 0;
        });
    Pretending.replace(
        "hipGetStreamDeviceId",
        (stream, b, c, d, e) -> {
          asked.incrementAndGet();
          return device.get();
        });
    onBoth(
        (gpu, gated) -> {
          try (DeviceArray incoming = awaited(gpu.type, gated.event)) {
            waits.clear();
            asked.set(0);
            for (long handle = 0; handle < 3; handle++) {
              incoming.waitOn(gpu.stream(handle));
            }
            assertEquals(0, asked.get());
            incoming.waitOn(gpu.stream(3));
            incoming.waitOn(gpu.stream(1L << 63)); // an address, however high
            assertEquals(2, asked.get());
            String first = gpu.isCuda ? "1 0" : "0 0"; // the legacy default stream
            assertEquals(List.of("0 0", first, "2 0", "3 0", "8000000000000000 0"), waits);
            if (!gpu.isCuda) {
              device.set(-3);
              assertFails(
                  EINVAL,
                  "HIP runtime API: hipGetStreamDeviceId failed with -3; hint: check that the stream"
                      + " is alive",
                  () -> incoming.waitOn(gated.ofConsumer()));
            }
          }
        });
  }

  // --- Contexts of CUDA

  @Test
  void anOrdinalIsAnInt() {
    Copy.run(this, "ordinals");
  }

  void ordinals() {
    List<Long> asked = new ArrayList<>();
    Pretending.replace(
        "cuDeviceGet",
        (out, ordinal, c, d, e) -> {
          asked.add(ordinal & 0xFFFFFFFFL);
          return 101;
        });
    Gpu gpu = Gpu.cuda("standin");
    Gpu.Gated gated = gpu.new Gated();
    long address = Pointer.nativeValue(gated.event);
    for (long id : new long[] {-1, 0, 1, Integer.MAX_VALUE, 1L << 31}) {
      boolean isOrdinal = id >= 0 && id <= Integer.MAX_VALUE;
      try (DeviceArray array = new Releases().array(gpu.type, id, address)) {
        onThread(
            () -> {
              FletchingException error = errorOf(array::synchronize);
              assertEquals(isOrdinal ? EIO : EINVAL, error.errno(), error.getMessage());
              assertTrue(
                  isOrdinal
                      ? error.getMessage().startsWith("CUDA driver API: cuDeviceGet failed with ")
                      : error
                          .getMessage()
                          .equals(
                              "device_id: not a CUDA device ordinal: expected 0 to 2147483647, got "
                                  + id),
                  error.getMessage());
            });
      }
    }
    assertEquals(List.of(0L, 1L, (long) Integer.MAX_VALUE), asked);
    gated.end();
  }

  /** The way back may fail because of earlier work: with the context popped, or without. */
  @Test
  void theCallersContextComesBack() {
    Copy.run(this, "popFails");
  }

  void popFails() {
    AtomicInteger fails = new AtomicInteger();
    AtomicInteger pops = new AtomicInteger();
    Gpu gpu = Gpu.cuda("standin");
    Pretending.replace(
        "cuCtxPopCurrent_v2",
        (out, b, c, d, e) -> {
          pops.incrementAndGet();
          return fails.getAndDecrement() > 0 ? 719 : gpu.call("cuCtxPopCurrent_v2", out);
        });
    Gpu.Gated gated = gpu.new Gated();
    gpu.recordEvent(gated.event, gated.producer);
    DeviceArray incoming = awaited(gpu.type, gated.event);
    long primary = gpu.current();
    gpu.openDevice(1);
    long other = gpu.current();
    fails.set(1);
    FletchingException error = errorOf(() -> incoming.waitOn(gated.ofConsumer()));
    assertTrue(error.getMessage().contains("cuCtxPopCurrent_v2 failed with " + gpu.error));
    assertEquals(2, pops.get()); // once more, because ours was still current
    assertEquals(other, gpu.current());
    gpu.closeDevice(1);
    assertEquals(primary, gpu.current());
    pops.set(0);
    incoming.waitOn(gated.ofConsumer()); // nothing is pushed, and nothing popped
    assertEquals(0, pops.get());
    incoming.close();
    gated.end();
  }

  /** Without cuCtxGetId, a context that was created counts as there. */
  @Test
  void anOlderDriverHasNoNumbersOfContexts() {
    Copy.run(this, "withoutNumbers");
  }

  void withoutNumbers() {
    Pretending.remove("cuCtxGetId");
    Gpu gpu = Gpu.cuda("standin");
    StandinContextsSuite.exportFromADestroyedContext(gpu, false);
    long numbers = gpu.calls("cuCtxGetId");
    long context = gpu.get("cuCtxCreate_v4", 0, 0, 0);
    long events = gpu.events();
    long stream = gpu.makeStream();
    DeviceArray array = new Releases().array(gpu.type);
    array.exportWithEvent(gpu.stream(stream));
    array.synchronize();
    onThread(array::close);
    assertEquals(events, gpu.events());
    Releases releases = new Releases();
    releases.array(gpu.type).releaseAfter(gpu.stream(stream));
    releases.waitFor(1);
    gpu.settleReleases();
    assertEquals(events, gpu.events());
    assertEquals(numbers, gpu.calls("cuCtxGetId"));
    gpu.ok("cuCtxDestroy_v2", context);
  }

  // --- Losses

  /** The loss is returned by the call that looks for the event's context. */
  @Test
  void arraysOfALostContextAreReleased() {
    Copy.run(this, "loseTheContext");
  }

  void loseTheContext() {
    Gpu gpu = Gpu.cuda("standin");
    Gpu.Gated gated = gpu.new Gated();
    gated.shut();
    Releases releases = new Releases();
    releases.array(gpu.type).releaseAfter(gated.ofProducer());
    gpu.setFault("cuDevicePrimaryCtxGetState:*:304"); // says nothing of the context
    long before = gpu.calls("cuDevicePrimaryCtxGetState");
    while (gpu.calls("cuDevicePrimaryCtxGetState") < before + 3) {
      Releases.pause();
    }
    releases.assertCount(0);
    gpu.resetFaults();
    gpu.setFault("cuDevicePrimaryCtxGetState:*:700");
    releases.waitFor(1);
    gpu.resetFaults();
    gated.open();
    gpu.closeDevice(0); // destroys what is left in the context
  }

  /** Only a query of the event shows that its own device is lost. */
  @Test
  void aLossThatAnotherCallReportsReleasesNothing() {
    Copy.run(this, "loseEverything");
  }

  void loseEverything() {
    AtomicInteger ofMode = new AtomicInteger();
    AtomicInteger ofQuery = new AtomicInteger();
    AtomicInteger refused = new AtomicInteger();
    onBoth(
        gpu -> {
          Pretending.replace(
              gpu.exchangeMode,
              (mode, b, c, d, e) -> {
                if (ofMode.get() == 0 || new Pointer(mode).getInt(0) != RELAXED) {
                  return gpu.call(gpu.exchangeMode, mode);
                }
                refused.incrementAndGet();
                return ofMode.get();
              });
          Pretending.replace(
              gpu.query,
              (event, b, c, d, e) ->
                  ofQuery.get() == 0 ? gpu.call(gpu.query, event) : ofQuery.get());
          Gpu.Gated gated = gpu.new Gated();
          gated.shut();
          Releases releases = new Releases();
          releases.array(gpu.type).releaseAfter(gated.ofProducer());
          for (int code : new int[] {700, 304}) {
            refused.set(0);
            ofMode.set(code);
            while (refused.get() < 10) {
              Releases.pause();
            }
            releases.assertCount(0); // it may be another device's
            assertEquals(code == 700 ? 0 : 1, DeviceArray.pendingReleases().refused());
          }
          ofMode.set(700);
          ofQuery.set(700);
          releases.waitFor(1);
          assertEquals(0, DeviceArray.pendingReleases().refused());
          ofMode.set(0);
          ofQuery.set(0);
          gated.end();
        });
  }
}
