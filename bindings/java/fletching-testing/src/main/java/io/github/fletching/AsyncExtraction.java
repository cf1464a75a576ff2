// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.util.concurrent.SynchronousQueue;
import java.util.function.IntSupplier;
import java.util.function.Supplier;

/** A call of take, which a trace keeps inside extract_data. */
final class AsyncExtraction {
  final int task;
  boolean inside; // extract_data was called
  final SynchronousQueue<Integer> answers = new SynchronousQueue<>();
  final SynchronousQueue<Supplier<Integer>> orders = new SynchronousQueue<>(); // null: no code yet

  AsyncExtraction(int task) {
    this.task = task;
  }

  static <T> T taken(SynchronousQueue<T> queue) {
    try {
      return queue.take();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  static <T> void put(SynchronousQueue<T> queue, T value) {
    try {
      queue.put(value);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Runs a step on the thread of the extraction. */
  int run(IntSupplier work) {
    SynchronousQueue<Integer> result = new SynchronousQueue<>();
    put(
        orders,
        () -> {
          put(result, work.getAsInt());
          return null;
        });
    return taken(result);
  }
}
