// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.engine.Failures;
import java.util.Objects;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Forwards received batches to a subscriber, one signal at a time. */
final class AsyncSubscription implements Flow.Subscription {
  private final AsyncHandler core;
  private final int window;
  private final AtomicBoolean taken = new AtomicBoolean();
  private final AtomicLong demand = new AtomicLong();
  private final AtomicInteger due = new AtomicInteger(); // pending runs of emit
  volatile Metadata batchMetadata = Metadata.EMPTY;
  private volatile Flow.Subscriber<? super DeviceArray> subscriber; // null unless subscribed
  private volatile RuntimeException misuse;
  private boolean greeted;
  private long owed; // batches taken but not requested again

  AsyncSubscription(AsyncHandler core, int window) {
    this.core = core;
    this.window = window;
    core.news = this::drain;
    if (window > 0) {
      core.request(window);
    }
  }

  void subscribe(Flow.Subscriber<? super DeviceArray> next) {
    Objects.requireNonNull(next, "subscriber");
    if (taken.compareAndSet(false, true)) {
      subscriber = next;
      drain();
      return;
    }
    next.onSubscribe(
        new Flow.Subscription() {
          @Override
          public void request(long n) {}

          @Override
          public void cancel() {}
        });
    next.onError(new IllegalStateException("subscribe: second subscriber: expected one"));
  }

  @Override
  public void request(long n) {
    if (n < 1) {
      misuse =
          new IllegalArgumentException("request: n is not positive: expected 1 or more, got " + n);
    } else {
      demand.accumulateAndGet(n, AsyncAbi::saturated);
      if (window <= 0) {
        core.request(n);
      }
    }
    drain();
  }

  @Override
  public void cancel() {
    subscriber = null;
    core.cancel(Owner.closed("AsyncDeviceStream"));
  }

  void close(RuntimeException reason) {
    core.cancel(reason);
    core.close();
  }

  /**
   * Closes a stream that was collected. Without a subscriber it is reported as a leak and canceled.
   */
  void collected() {
    boolean closes = core.close();
    if (closes && taken.compareAndSet(false, true)) {
      Slot.reportLeak("async stream", null);
      core.cancel(Owner.closed("AsyncDeviceStream"));
    }
  }

  /** Sends pending signals. If another call is already sending, that call sends them. */
  private void drain() {
    if (due.getAndIncrement() != 0) {
      return;
    }
    for (int done = 1; done != 0; done = due.addAndGet(-done)) {
      try {
        emit();
      } catch (Throwable thrown) { // rule 2.13: a subscriber that throws has canceled
        cancel();
        Failures.log("subscriber", thrown);
      }
    }
  }

  private void emit() {
    Flow.Subscriber<? super DeviceArray> next = subscriber;
    if (next == null) { // subscribe drains again
      return;
    }
    if (!greeted) {
      greeted = true;
      next.onSubscribe(this);
    }
    while (misuse == null && demand.get() > 0 && deliver(next)) {}
    RuntimeException outcome = misuse != null ? misuse : core.outcome();
    if (outcome != null && subscriber != null) {
      finish(next, outcome);
    }
  }

  /** Delivers a batch; returns false if none has arrived. */
  private boolean deliver(Flow.Subscriber<? super DeviceArray> next) {
    boolean replenishes = window > 0 && owed + 1 >= (window + 1) / 2;
    AsyncConsumer.Received received = core.take(replenishes ? owed + 1 : 0);
    if (received == null) {
      return false;
    }
    owed = replenishes ? 0 : owed + 1;
    if (received.error != null) {
      finish(next, received.error);
    } else if (subscriber == null) { // canceled meanwhile
      received.batch.close();
    } else {
      demand.decrementAndGet();
      batchMetadata = received.metadata;
      next.onNext(received.batch);
    }
    return true;
  }

  private void finish(Flow.Subscriber<? super DeviceArray> next, RuntimeException outcome) {
    subscriber = null;
    core.cancel(outcome); // drops queued batches after a misuse or a lost batch
    if (outcome == AsyncConsumer.END) {
      next.onComplete();
    } else {
      next.onError(outcome);
    }
  }
}
