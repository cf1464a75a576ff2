// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Releases.awaited;
import static io.github.fletching.testing.suite.Releases.errorOf;
import static io.github.fletching.testing.suite.Releases.onThread;
import static io.github.fletching.testing.suite.StandinEventsTest.onBoth;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.FletchingException;
import io.github.fletching.testing.Pretending;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Contexts that are found and left, and losses: on the stand-ins with functions in Java. */
@Timeout(120)
class PretendedContextsTest {
  private static final int EIO = 5;
  private static final int EINVAL = 22;
  private static final int RELAXED = 2; // the mode

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
                          .startsWith(
                              "device_id: not a CUDA device ordinal: expected 0 to 2147483647, got "
                                  + id
                                  + "; hint: "),
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

  /** Two codes mean that the context has destroyed the event; after any other code it leaks. */
  @Test
  void eventOfAContextThatIsGoneIsLeftAlone() {
    Copy.run(this, "contextsThatAreGone");
  }

  void contextsThatAreGone() {
    Gpu gpu = Gpu.cuda("standin");
    AtomicInteger code = new AtomicInteger();
    Pretending.replace(
        "cuCtxGetId",
        (context, out, c, d, e) ->
            context != 0 && code.get() != 0 ? code.get() : gpu.call("cuCtxGetId", context, out));
    long context = gpu.get("cuCtxCreate_v4", 0, 0, 0);
    long destroyed = gpu.calls("cuEventDestroy_v2");
    for (int result : new int[] {709, 201, 304}) {
      DeviceArray array = new Releases().array(gpu.type);
      array.exportWithEvent(gpu.stream(gpu.makeStream()));
      long leaked = DeviceArray.pendingReleases().leakedEvents();
      code.set(result);
      onThread(array::close);
      code.set(0);
      assertEquals(leaked + (result == 304 ? 1 : 0), DeviceArray.pendingReleases().leakedEvents());
    }
    assertEquals(destroyed, gpu.calls("cuEventDestroy_v2"));
    gpu.ok("cuCtxDestroy_v2", context);
  }

  // --- Calls that succeed and report the error of an earlier one

  /** The mode of the thread, which becomes the default one. */
  private static int mode(Gpu gpu) {
    Memory mode = new Memory(4);
    mode.setInt(0, 0);
    gpu.ok(gpu.exchangeMode, Pointer.nativeValue(mode));
    return mode.getInt(0);
  }

  @Test
  void modeIsRestoredAfterAnEarlierError() {
    Copy.run(this, "restoreMode");
  }

  void restoreMode() {
    Deque<Integer> results = new ArrayDeque<>();
    onBoth(
        (gpu, gated) -> {
          Pretending.replace(
              gpu.exchangeMode,
              (mode, b, c, d, e) -> {
                int result = results.isEmpty() ? 0 : results.pop();
                return result == 304 ? 304 : gpu.call(gpu.exchangeMode, mode) + result;
              });
          gpu.recordEvent(gated.event, gated.producer);
          try (DeviceArray array = awaited(gpu.type, gated.event)) {
            for (List<Integer> codes : List.of(List.of(719), List.of(0, 719), List.of(0, 304))) {
              results.addAll(codes); // 304: the call does nothing
              FletchingException error = errorOf(array::isReady);
              assertTrue(error.getMessage().contains(gpu.exchangeMode + " failed"));
              assertEquals(0, mode(gpu));
            }
          }
        });
  }

  @Test
  void anEventIsDestroyedOnce() {
    Copy.run(this, "destroyOnce");
  }

  void destroyOnce() {
    AtomicInteger calls = new AtomicInteger();
    AtomicInteger created = new AtomicInteger();
    AtomicInteger refused = new AtomicInteger();
    onBoth(
        (gpu, gated) -> {
          String destroy = gpu.isCuda ? "cuEventDestroy_v2" : "hipEventDestroy";
          String create = gpu.isCuda ? "cuEventCreate" : "hipEventCreateWithFlags";
          Pretending.replace(
              create,
              (out, flags, c, d, e) -> {
                created.set((int) flags);
                return gpu.call(create, out, flags);
              });
          Pretending.replace(
              destroy,
              (event, b, c, d, e) -> {
                calls.incrementAndGet();
                return gpu.call(destroy, event) + 719;
              });
          Pretending.replace(
              gpu.exchangeMode,
              (mode, b, c, d, e) ->
                  refused.getAndDecrement() > 0 ? 304 : gpu.call(gpu.exchangeMode, mode));
          for (int refusals = 0; refusals < 2; refusals++) { // without the mode too
            long events = gpu.events();
            calls.set(0);
            DeviceArray array = new Releases().array(gpu.type);
            array.exportWithEvent(gated.ofProducer());
            assertEquals(3, created.get()); // without timing, and a wait of the host sleeps
            refused.set(refusals);
            array.close();
            refused.set(0);
            assertEquals(1, calls.get());
            assertEquals(events, gpu.events());
          }
        });
  }

  @Test
  void errorAfterAQueryIsIgnored() {
    Copy.run(this, "wayBackFails");
  }

  void wayBackFails() {
    Gpu gpu = Gpu.cuda("standin");
    AtomicInteger fails = new AtomicInteger(1); // of the thread that queries
    Pretending.replace(
        "cuCtxPopCurrent_v2",
        (out, b, c, d, e) ->
            gpu.call("cuCtxPopCurrent_v2", out) + (fails.getAndDecrement() > 0 ? 719 : 0));
    Gpu.Gated gated = gpu.new Gated();
    Releases.releaseAfter(gated.ofProducer());
    gpu.settleReleases();
    assertTrue(fails.get() < 1);
    assertEquals("", DeviceArray.pendingReleases().lastRefusal());
    gated.end();
  }

  /** C has moved the array out while its event was recorded: it is another owner's. */
  @Test
  void anArrayThatIsMovedOutIsNotReleased() {
    Copy.run(this, "moveOut");
  }

  void moveOut() {
    onBoth(
        (gpu, gated) -> {
          Releases releases = new Releases();
          DeviceArray array = releases.array(gpu.type);
          Raw there = Raw.array();
          long struct = array.address();
          Pretending.replace(
              gpu.record,
              (event, stream, c, d, e) -> {
                Raw.arrayAt(struct).move(there);
                return gpu.call(gpu.record, event, stream);
              });
          array.releaseAfter(gated.ofProducer());
          gpu.settleReleases();
          while (DeviceArray.pendingReleases().pending() > 0) {
            Releases.pause();
          }
          gpu.settleReleases();
          releases.assertCount(0);
          there.release();
          releases.assertCount(1);
        });
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
