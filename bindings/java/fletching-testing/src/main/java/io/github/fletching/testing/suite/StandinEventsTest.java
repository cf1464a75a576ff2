// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.EINVAL;
import static io.github.fletching.testing.suite.Releases.assertFails;
import static io.github.fletching.testing.suite.Releases.onThread;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.Shared;
import io.github.fletching.abi.DeviceType;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Events of CUDA and HIP, on the stand-ins. */
@Timeout(120)
class StandinEventsTest {
  static void onBoth(Consumer<Gpu> body) {
    body.accept(Gpu.cuda("standin"));
    body.accept(Gpu.hip("standin"));
  }

  /** Runs the body with a gate, and expects no new live objects afterwards. */
  static void onBoth(BiConsumer<Gpu, Gpu.Gated> body) {
    onBoth(
        gpu -> {
          Gpu.Gated gated = gpu.new Gated();
          body.accept(gpu, gated);
          gated.end();
        });
  }

  private static DeviceArray array(Gpu gpu) {
    return new Releases().array(gpu.type, new Releases());
  }

  @Test
  void ruleSyncEventTypeOfTable() {
    onBoth(
        (gpu, gated) -> {
          Memory none = new Memory(8);
          none.clear();
          Map<Long, String> wrong =
              Map.of(
                  gated.event.getLong(0),
                  "address",
                  4088L, // the first page is never mapped
                  "aligned address",
                  Pointer.nativeValue(gated.event) + 1,
                  "aligned address",
                  Pointer.nativeValue(none),
                  "the handle is NULL");
          wrong.forEach(
              (address, part) -> {
                try (DeviceArray array = new Releases().array(gpu.type, 0, address)) {
                  assertFails(EINVAL, array::synchronize, part);
                  assertFails(EINVAL, () -> array.waitOn(gated.ofConsumer()), part);
                  assertFails(EINVAL, array::isReady, part);
                }
              });
        });
  }

  @Test
  void interruptDoesNotEndWait() {
    onBoth(
        (gpu, gated) -> {
          gated.shut();
          DeviceArray array = array(gpu);
          array.exportWithEvent(gated.ofProducer());
          long waits = gpu.calls(gpu.synchronize);
          Thread waiting = Thread.currentThread();
          Thread opening =
              new Thread(
                  () -> {
                    while (gpu.calls(gpu.synchronize) == waits) {
                      Releases.pause();
                    }
                    waiting.interrupt();
                    gated.open();
                  });
          opening.start();
          array.synchronize();
          while (!Thread.interrupted()) { // the interrupt may arrive late
            Thread.yield();
          }
          assertTrue(gpu.isIdle(gated.producer));
          array.close();
        });
  }

  @Test
  void eventOutlivesParent() {
    onBoth(
        (gpu, gated) -> {
          long events = gpu.events();
          gated.shut();
          Releases parents = new Releases();
          Releases children = new Releases();
          DeviceArray array = parents.array(gpu.type, children);
          array.exportWithEvent(gated.ofProducer());
          assertFails(EINVAL, () -> array.exportWithEvent(gated.ofProducer()), "sync_event is set");
          long event = array.syncEvent();
          Raw raw = Raw.deviceArray();
          array.moveTo(raw.address());
          Raw child = raw.child(0).move(Raw.array()); // as a C consumer does
          raw.release();
          parents.assertCount(1);
          DeviceArray other = new Releases().array(gpu.type, 0, event);
          assertFalse(other.isReady());
          gated.open();
          other.synchronize();
          other.close();
          assertEquals(events + 1, gpu.events());
          onThread(child::release);
          children.assertCount(2);
          assertEquals(events, gpu.events());
        });
  }

  @Test
  void takenChildKeepsEvent() {
    onBoth(
        (gpu, gated) -> {
          gated.shut();
          Releases parents = new Releases();
          Releases children = new Releases();
          DeviceArray array = parents.array(gpu.type, children);
          array.exportWithEvent(gated.ofProducer());
          DeviceArray child = array.takeChild(0);
          array.close();
          children.assertCount(1); // the other child, which need not wait
          assertFalse(child.isReady());
          gated.open();
          child.synchronize();
          child.close();
          parents.assertCount(1);
          children.assertCount(2);
        });
  }

  /** An array from a builder, with views that share the event. */
  @Test
  void builtArrayRecordsEvent() {
    onBoth(
        (gpu, gated) -> {
          Releases closed = new Releases();
          ArrayBuilder table = new ArrayBuilder(1).buffers(0).child(new ArrayBuilder(1));
          AutoCloseable object = () -> closed.array(gpu.type).close();
          DeviceArray array = table.buildOn(gpu.type, 0, 0, object);
          array.exportWithEvent(gated.ofProducer());
          Shared<DeviceArray> shared = array.share();
          DeviceArray column = shared.column(0);
          shared.close();
          closed.assertCount(0);
          column.synchronize();
          column.close();
          closed.assertCount(1);
        });
  }

  @Test
  void exportWithEventRejectsMalformedArray() {
    onBoth(
        (gpu, gated) -> {
          long records = gpu.calls(gpu.record);
          for (long count : new long[] {-1, (1 << 22) + 1, 1L << 62}) {
            Raw raw = Raw.deviceArray();
            Releases releases = new Releases();
            releases.array(gpu.type).moveTo(raw.address());
            raw.set("n_children", count);
            try (DeviceArray array = raw.give(DeviceArray::wrap)) {
              assertFails(
                  EINVAL,
                  () -> array.exportWithEvent(gated.ofProducer()),
                  "exportWithEvent: ",
                  "n_children out of range");
              assertEquals(0, array.syncEvent());
            }
            releases.assertCount(1);
          }
          assertEquals(records, gpu.calls(gpu.record));
        });
  }

  /** The reaper's thread is a daemon and ends when no release is pending. */
  @Test
  void reaperRunsOnlyWhileReleasesArePending() {
    onBoth(
        gpu -> {
          Gpu.Gated gated = gpu.new Gated();
          gated.shut();
          Releases behind = new Releases();
          behind.array(gpu.type).releaseAfter(gated.ofProducer());
          assertNotEquals(0, releaseThreads());
          gated.open();
          behind.waitFor(1);
          gated.end();
          while (releaseThreads() > 0) {
            Releases.pause();
          }
        });
  }

  private static long releaseThreads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals("fletching-release"))
        .peek(thread -> assertTrue(thread.isDaemon()))
        .count();
  }

  @Test
  void slowCallbackDoesNotDelayOthers() {
    onBoth(
        (gpu, gated) -> {
          CountDownLatch begun = new CountDownLatch(40);
          CountDownLatch go = new CountDownLatch(1);
          Releases slow =
              new Releases(
                  () -> {
                    begun.countDown();
                    await(go);
                  });
          for (int i = 0; i < 40; i++) {
            slow.array(gpu.type).releaseAfter(gated.ofConsumer());
          }
          await(begun);
          Releases quick = new Releases();
          quick.array(gpu.type).releaseAfter(gated.ofConsumer());
          quick.waitFor(1);
          slow.assertCount(0);
          go.countDown();
          slow.waitFor(40);
        });
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  void operationsRejectClosedArray() {
    onBoth(
        gpu -> {
          DeviceStream stream = gpu.stream(0);
          DeviceArray empty = array(gpu);
          empty.synchronize();
          empty.waitOn(DeviceStream.of(DeviceType.CPU, 0)); // no event to wait on
          assertTrue(empty.isReady());
          DeviceArray movedInC = array(gpu);
          Raw.arrayAt(movedInC.address()).move(Raw.array());
          empty.close();
          for (DeviceArray closed : new DeviceArray[] {empty, movedInC}) {
            assertThrows(IllegalStateException.class, closed::synchronize);
            assertThrows(IllegalStateException.class, () -> closed.waitOn(stream));
            assertThrows(IllegalStateException.class, closed::isReady);
            assertThrows(IllegalStateException.class, () -> closed.exportWithEvent(stream));
            assertThrows(IllegalStateException.class, () -> closed.releaseAfter(stream));
          }
        });
  }

  @Test
  void threadsMayWaitConcurrently() {
    onBoth(
        (gpu, gated) -> {
          DeviceArray array = array(gpu);
          array.exportWithEvent(gated.ofProducer());
          Runnable ask =
              () -> {
                array.waitOn(gated.ofConsumer());
                array.synchronize();
                assertTrue(array.isReady());
              };
          onThread(
              () -> {
                onThread(ask);
                ask.run();
              });
          array.close();
        });
  }
}
