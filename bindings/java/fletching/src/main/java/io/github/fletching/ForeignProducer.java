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
 * A consumer's lock and its calls to the producer. The lock is held before and after each call, but
 * not during it.
 */
final class ForeignProducer {
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition quiet = lock.newCondition(); // signaled when a call returns
  private final List<Thread> toTasks = new ArrayList<>(); // calling threads, one entry per call
  private final List<Thread> toProducer = new ArrayList<>();
  long producer; // 0 until the schema arrives

  /** A task received by on_next_task. */
  static final class Task {
    private final long copy; // recycled after the extraction
    final Metadata metadata;

    /** Copies the struct. Throws ENOMEM. */
    Task(long task, Metadata metadata) {
      this.metadata = metadata;
      copy = AsyncAbi.takeBlock();
      C.copy(task, copy, Offsets.ARROW_ASYNC_TASK.size(C.target()));
    }

    /** Ends a rejected or extracted task. */
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

  /** Runs foreign code without the lock, which is held before and after. */
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

  /** Returns the result of extract_data. */
  int extract(Task task, long out) {
    int code = (int) out(toTasks, Callback.TASK_EXTRACT_DATA, task.copy, out);
    task.free();
    return code;
  }

  void drop(Task task) {
    extract(task, 0);
  }

  /** Whether calls run, none of them on this thread: such a call waits for the current one. */
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
