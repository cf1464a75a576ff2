// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;

/** Consumer that records the calls it gets, and calls the producer where the test does. */
final class AsyncConsumerPeer implements AsyncForeign.Handler, Executor, AutoCloseable {
  final long handler = AsyncForeign.handler(this);
  final List<Long> tasks = new ArrayList<>();
  final List<Metadata> metadata = new ArrayList<>();
  long ofLastTask; // metadata address of the last task
  final LinkedBlockingQueue<Runnable> jobs = new LinkedBlockingQueue<>();
  Consumer<String> inside = call -> {};
  String refuses = "";
  int code;
  private final List<String> calls = new ArrayList<>();

  @Override
  public void execute(Runnable job) {
    jobs.add(job);
  }

  /** Runs the pending jobs. */
  AsyncConsumerPeer run() {
    for (Runnable job = jobs.poll(); job != null; job = jobs.poll()) {
      job.run();
    }
    return this;
  }

  private int called(String call) {
    inside.accept(call);
    add(call);
    return call.equals(refuses) ? code : 0;
  }

  private synchronized void add(String call) {
    calls.add(call);
  }

  synchronized String calls() {
    String all = String.join(", ", calls);
    calls.clear();
    return all;
  }

  @Override
  public int onSchema(long given) {
    int result = called("schema");
    if (result == 0) {
      Kind.SCHEMA.releaseOnce(given);
    }
    return result;
  }

  @Override
  public int onNextTask(long task, long block) {
    if (task == 0) {
      return called("end");
    }
    synchronized (tasks) {
      tasks.add(AsyncForeign.copyTask(task));
    }
    ofLastTask = block;
    int result = called("task");
    metadata.add(Metadata.at(block)); // still valid after the extraction
    if (result != 0) {
      oldest();
    }
    return result;
  }

  @Override
  public void onError(int error, String message, long block) {
    called("error " + error + " " + message + (block == 0 ? "" : " metadata"));
  }

  @Override
  public void release() {
    called("release");
  }

  long producer() {
    return C.getAddress(handler + Fields.HANDLER_PRODUCER);
  }

  void request(long n) {
    AsyncForeign.callRequest(producer(), n);
  }

  void cancel() {
    AsyncForeign.callCancel(producer());
  }

  long oldest() {
    synchronized (tasks) {
      return tasks.remove(0);
    }
  }

  /** Extracts the oldest task; returns its row count, or the negative error code. */
  long extract() {
    return extract(oldest());
  }

  long extract(long task) {
    Slot out = Slot.take(Kind.DEVICE_ARRAY);
    int result = AsyncForeign.callExtract(task, out.address);
    if (result != 0) {
      String live = Kind.DEVICE_ARRAY.isReleased(out.address) ? "" : " and an array";
      add(live.isEmpty() ? "failed" : "an error" + live);
      out.free();
      return -result;
    }
    try (DeviceArray batch = new DeviceArray(out)) {
      return batch.length();
    }
  }

  void dropAll() {
    synchronized (tasks) {
      while (!tasks.isEmpty()) {
        drop();
      }
    }
  }

  int drop() {
    return AsyncForeign.callExtract(oldest(), 0);
  }

  @Override
  public void close() {
    AsyncForeign.freeHandler(handler);
  }
}
