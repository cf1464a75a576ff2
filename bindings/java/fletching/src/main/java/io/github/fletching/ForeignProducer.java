// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

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
    private final long extractData;
    private final long privateData;
    final Metadata metadata;

    Task(long task, Metadata metadata) {
      extractData = Callback.TASK_EXTRACT_DATA.in(task);
      privateData = C.getAddress(task + Fields.TASK_PRIVATE_DATA);
      this.metadata = metadata;
    }

    boolean isComplete() {
      return extractData != 0;
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
    long copy = AsyncAbi.takeBlock();
    Callback.TASK_EXTRACT_DATA.put(copy, task.extractData);
    C.putAddress(copy + Fields.TASK_PRIVATE_DATA, task.privateData);
    int code = (int) out(toTasks, Callback.TASK_EXTRACT_DATA, copy, out);
    AsyncAbi.putBlock(copy);
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
