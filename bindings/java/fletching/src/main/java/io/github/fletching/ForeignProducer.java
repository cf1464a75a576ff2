// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.Offsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/**
 * The lock of a consumer, and its calls to the producer: they begin and end with the lock, which is
 * not held during the call.
 */
final class ForeignProducer {
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition quiet = lock.newCondition(); // a call has returned
  private final List<Thread> toTasks = new ArrayList<>(); // which run calls; one for each call
  private final List<Thread> toProducer = new ArrayList<>();
  long producer; // 0 until there is a schema

  /** A task, as on_next_task was called with it. */
  static final class Task {
    private final long copy; // given back after the extraction
    final Metadata metadata;

    /** Copies the struct. Errors: ENOMEM. */
    Task(long task, Metadata metadata) {
      this.metadata = metadata;
      copy = AsyncAbi.takeBlock();
      C.copy(task, copy, Offsets.ARROW_ASYNC_TASK.size(C.target()));
    }

    /** The end of a task that is refused, or extracted. */
    void free() {
      AsyncAbi.putBlock(copy);
    }
  }

  <T> T locked(Supplier<T> body) {
    lock.lock();
    try {
      return body.get();
    } finally {
      lock.unlock();
    }
  }

  void locked(Runnable body) {
    lock.lock();
    try {
      body.run();
    } finally {
      lock.unlock();
    }
  }

  /** Runs what is not ours, with the lock before and after. */
  void unlocked(Runnable body) {
    lock.unlock();
    try {
      body.run();
    } finally {
      lock.lock();
    }
  }

  private long out(List<Thread> running, Callback callback, long... arguments) {
    running.add(Thread.currentThread());
    lock.unlock();
    try {
      return callback.call(arguments);
    } finally {
      lock.lock();
      running.remove(Thread.currentThread());
      quiet.signalAll();
    }
  }

  void request(long n) {
    out(toProducer, Callback.PRODUCER_REQUEST, producer, n);
  }

  void cancel() {
    out(toProducer, Callback.PRODUCER_CANCEL, producer);
  }

  /** Returns the code of extract_data. */
  int extract(Task task, long out) {
    int code = (int) out(toTasks, Callback.TASK_EXTRACT_DATA, task.copy, out);
    task.free();
    return code;
  }

  void drop(Task task) {
    extract(task, 0);
  }

  /** Whether calls run, and all of them on other threads: those of this one wait for us. */
  boolean runsElsewhere() {
    return !isQuiet() && here(toProducer) + here(toTasks) == 0;
  }

  void awaitRequests() {
    int ours = here(toProducer);
    while (toProducer.size() > ours) {
      quiet.awaitUninterruptibly();
    }
  }

  void awaitAll() {
    while (!isQuiet()) {
      quiet.awaitUninterruptibly();
    }
  }

  private boolean isQuiet() {
    return toTasks.isEmpty() && toProducer.isEmpty();
  }

  private static int here(List<Thread> running) {
    return Collections.frequency(running, Thread.currentThread());
  }
}
