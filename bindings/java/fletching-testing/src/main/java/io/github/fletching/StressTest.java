// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.CapturedLog;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Two threads that do the same work at the same time, in many rounds. */
@Timeout(300)
class StressTest {
  private static final int ROUNDS = 1_000;
  private static final int MANY = 32; // steps per round

  private final AtomicInteger closed = new AtomicInteger();

  private AutoCloseable counted() {
    return closed::incrementAndGet;
  }

  /** Lock-free barrier for two threads, reusable for every round. */
  private static final class SpinBarrier {
    private final AtomicInteger arrived = new AtomicInteger();

    void await() {
      int mine = arrived.incrementAndGet();
      int both = mine + (mine & 1); // the even number of this round
      for (int spins = 0; arrived.get() < both; spins++) {
        if (spins % 100 == 99) {
          Thread.yield();
        } else {
          Thread.onSpinWait();
        }
      }
    }
  }

  /**
   * Runs the body on two threads, numbered 0 and 1. One of them runs the preparation before each
   * round and the check after it.
   */
  static void race(int rounds, Runnable prepare, IntConsumer body, Runnable check)
      throws Exception {
    SpinBarrier meeting = new SpinBarrier();
    Throwable[] failure = new Throwable[2];
    IntConsumer side =
        number -> {
          for (int round = 0; round < rounds; round++) {
            if (number == 0 && failure[0] == null) {
              failure[0] = tryRun(prepare);
            }
            meeting.await();
            if (failure[0] == null) {
              failure[number] =
                  failure[number] != null ? failure[number] : tryRun(() -> body.accept(number));
            }
            meeting.await();
            if (number == 0 && failure[0] == null) {
              failure[0] = tryRun(check);
            }
          }
        };
    Thread other = new Thread(() -> side.accept(1));
    other.start();
    side.accept(0);
    other.join();
    for (Throwable each : failure) {
      if (each != null) {
        throw new AssertionError(each);
      }
    }
  }

  private static Throwable tryRun(Runnable body) {
    try {
      body.run();
      return null;
    } catch (Throwable thrown) {
      return thrown;
    }
  }

  private static int half(int number, int step) {
    return 2 * step + number;
  }

  /** Two threads close the same owners. */
  @Test
  void closeReleasesOnceAndReturnsOneSlot() throws Exception {
    List<Array> owners = new ArrayList<>();
    CapturedLog log = new CapturedLog();
    try {
      race(
          ROUNDS,
          () -> {
            owners.clear();
            for (int i = 0; i < MANY; i++) {
              owners.add(new ArrayBuilder(1).build(counted()));
            }
          },
          number -> owners.forEach(Array::close),
          () -> {
            assertEquals(MANY, closed.getAndSet(0));
            assertEquals(List.of(), log.take());
            Set<Long> addresses = new HashSet<>();
            List<Array> next = new ArrayList<>();
            for (int i = 0; i < MANY; i++) {
              next.add(new ArrayBuilder(1).build(null));
              addresses.add(next.get(i).address());
            }
            next.forEach(Array::close);
            assertEquals(MANY, addresses.size(), "a slot that two owners have");
          });
    } finally {
      log.close();
    }
  }

  /**
   * A thread that builds during another thread's shutdown gets an exception and never uses freed
   * memory.
   */
  @Test
  void takeDuringShutdownThrows() {
    new ArrayBuilder(1).build(counted()).close(); // its slot is reused
    Slot.close(true);
    try {
      assertThrows(IllegalStateException.class, () -> new ArrayBuilder(1).build(null));
    } finally {
      Slot.close(false);
    }
    try (Array open = new ArrayBuilder(1).build(null)) {
      assertThrows(IllegalStateException.class, Owner::shutdown);
      new ArrayBuilder(1).build(null).close();
      assertEquals(1, open.length());
    }
  }

  private static long moved(Array array) {
    long struct = C.allocate(Kind.ARRAY.size);
    array.moveTo(struct);
    return struct;
  }

  /** Releases a struct as C would. */
  private static void release(long struct) {
    C.run(C.getAddress(struct + Kind.ARRAY.release), struct);
    C.free(struct);
  }

  /** A C thread and a Java thread release the children of one array, which share a block. */
  @Test
  void lastChildFreesBlock() throws Exception {
    int columns = 16 * MANY;
    List<Array> children = new ArrayList<>();
    List<Long> exported = new ArrayList<>();
    ArrayBuilder table = new ArrayBuilder(1);
    for (int i = 0; i < 2 * columns; i++) {
      table.child(new ArrayBuilder(1));
    }
    race(
        ROUNDS / 4,
        () -> {
          children.clear();
          exported.clear();
          try (Array array = table.build(counted())) {
            for (int i = 0; i < columns; i++) {
              children.add(array.takeChild(i));
              exported.add(moved(array.takeChild(columns + i)));
            }
          }
        },
        number -> {
          if (number == 0) {
            children.forEach(Array::close);
          } else {
            exported.forEach(StressTest::release);
          }
        },
        () -> assertEquals(1, closed.getAndSet(0), "closes of what the block keeps"));
  }

  /** C threads release the views of one share. */
  @Test
  void lastViewReleasesShare() throws Exception {
    List<Long> views = new ArrayList<>();
    race(
        ROUNDS,
        () -> {
          views.clear();
          try (Shared<Array> shared = new ArrayBuilder(1).build(counted()).share()) {
            for (int i = 0; i < 2 * MANY; i++) {
              views.add(moved(shared.view()));
            }
          }
        },
        number -> {
          for (int i = 0; i < MANY; i++) {
            release(views.get(half(number, i)));
          }
        },
        () -> assertEquals(1, closed.getAndSet(0), "closes of what the share keeps"));
  }

  /** Arguments and results are separate for each thread. */
  @Test
  void concurrentCallsAreIndependent() throws Exception {
    long abs = C.symbol(0, "labs");
    race(
        20,
        () -> {},
        number -> {
          for (int i = 1; i <= 100_000; i++) { // long enough for a thread switch in a call
            long argument = number == 0 ? i : (long) i << 32;
            assertEquals(argument, C.call("ll", abs, -argument));
          }
        },
        () -> {});
  }

  /** Consumer threads extract the tasks of one stream, which is released after the last task. */
  @Test
  void lastTaskReleasesStream() throws Exception {
    AsyncConsumerPeer peer = new AsyncConsumerPeer();
    List<AsyncSending<DeviceArray>> streams = new ArrayList<>();
    List<Long> tasks = new ArrayList<>();
    race(
        ROUNDS,
        () -> {
          tasks.clear();
          streams.clear();
          List<DeviceArray> batches = new ArrayList<>();
          for (int i = 0; i < 2 * MANY; i++) {
            batches.add(AsyncRows.rowsOf(1));
          }
          AsyncSending<DeviceArray> sending =
              new AsyncSending<>(
                  peer.handler, DeviceType.CPU, Metadata.EMPTY, peer, AsyncBatch::of);
          streams.add(sending);
          sending.iterator = batches.iterator();
          sending.open(AsyncRows.schema());
          peer.run();
          peer.request(2 * MANY);
          peer.run();
          for (int i = 0; i < 2 * MANY; i++) {
            tasks.add(peer.oldest());
          }
          assertFalse(sending.done.isDone());
        },
        number -> {
          for (int i = 0; i < MANY; i++) {
            AsyncForeign.callExtract(tasks.get(half(number, i)), 0);
          }
        },
        () -> {
          peer.run();
          assertTrue(streams.get(0).done.isDone(), "the handler was not released");
          peer.calls();
          peer.metadata.clear();
          tasks.forEach(AsyncAbi::putBlock);
        });
  }

  /** The stream's lock guards the count of open tasks. */
  @Test
  void taskCloseHoldsLock() throws Exception {
    try (AsyncConsumerPeer peer = new AsyncConsumerPeer()) {
      AsyncSending<DeviceArray> sending =
          new AsyncSending<>(peer.handler, DeviceType.CPU, Metadata.EMPTY, peer, AsyncBatch::of);
      sending.iterator = List.of(AsyncRows.rowsOf(1)).iterator();
      sending.open(AsyncRows.schema());
      peer.run().request(1);
      peer.run();
      Thread consumer = new Thread(peer::drop);
      synchronized (sending) {
        consumer.start();
        while (consumer.getState() != Thread.State.BLOCKED) {
          assertTrue(consumer.isAlive(), "closed without the lock");
          Thread.yield();
        }
      }
      consumer.join();
      peer.run();
      assertTrue(sending.done.isDone());
    }
  }

  /** The array of a running wait is not collected, even without any other reference. */
  @Test
  void waiterKeepsArrayUntilReturn() {
    int[] calls = {0};
    boolean[] warm = {false};
    Waiter waiter =
        new Waiter() {
          private void use() {
            if (warm[0]) {
              return;
            }
            for (int i = 0; i < 2; i++) { // arrays collected together with the first are released
              awaitCollected();
            }
            calls[0]++;
            assertEquals(0, closed.get(), "released during the wait");
          }

          @Override
          public void synchronize(SyncEvent event) {
            use();
          }

          @Override
          public void waitOn(SyncEvent event, DeviceStream stream) {
            use();
          }

          @Override
          public boolean isReady(SyncEvent event) {
            use();
            return true;
          }
        };
    Waiters.register(DeviceType.EXT_DEV, waiter);
    CapturedLog log = new CapturedLog();
    try {
      DeviceStream stream = DeviceStream.of(DeviceType.EXT_DEV, 1);
      List<Consumer<DeviceArray>> waits =
          List.of(DeviceArray::synchronize, array -> array.waitOn(stream), DeviceArray::isReady);
      for (Consumer<DeviceArray> wait : waits) {
        warm[0] = true;
        try (DeviceArray other = new ArrayBuilder(1).buildOn(DeviceType.EXT_DEV, 0, 1, null)) {
          for (int i = 0; i < 100_000; i++) { // interpreted code keeps unused references alive
            wait.accept(other);
          }
        }
        warm[0] = false;
        wait.accept(new ArrayBuilder(1).buildOn(DeviceType.EXT_DEV, 0, 0x1234, counted()));
        while (closed.get() == 0 && !Thread.interrupted()) {
          System.gc();
        }
        assertEquals(1, closed.getAndSet(0));
      }
      assertEquals(3, calls[0]);
    } finally {
      log.close();
      Waiters.unregister(DeviceType.EXT_DEV);
    }
  }

  /** Returns once the cleaner has released an array that this method dropped. */
  private static void awaitCollected() {
    AtomicInteger released = new AtomicInteger();
    forget(released);
    while (released.get() == 0 && !Thread.interrupted()) {
      System.gc();
    }
  }

  private static void forget(AtomicInteger released) {
    new ArrayBuilder(1).build(() -> released.incrementAndGet());
  }
}
