// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.DeviceType;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Subscriber that records the row count of each batch, then 0 or the negative error code. */
public class AsyncRows implements Flow.Subscriber<DeviceArray> {
  /** Counts the unreleased batches. */
  static final class LiveBatches extends AtomicInteger implements AutoCloseable {
    private static final long serialVersionUID = 1;

    @Override
    public void close() {
      decrementAndGet();
    }

    DeviceArray batch(int rows) {
      incrementAndGet();
      return rowsOf(rows, DeviceType.CPU, this);
    }
  }

  static DeviceArray rowsOf(int rows) {
    return rowsOf(rows, DeviceType.CPU, null);
  }

  static DeviceArray rowsOf(int rows, DeviceType type, AutoCloseable object) {
    return new ArrayBuilder(rows).buffers(0, 0).buildOn(type, 0, 0, object);
  }

  static Schema schema() {
    return new SchemaBuilder("i").build();
  }

  private final List<Long> rows = new ArrayList<>();
  private final CountDownLatch over = new CountDownLatch(1);
  private final long first;
  private final long more;
  volatile Flow.Subscription subscription;
  volatile Throwable error;

  /** Requests {@code first} batches, then {@code more} after each batch. */
  public AsyncRows(long first, long more) {
    this.first = first;
    this.more = more;
  }

  @Override
  public void onSubscribe(Flow.Subscription given) {
    subscription = given;
    if (first > 0) {
      given.request(first);
    }
  }

  @Override
  public void onNext(DeviceArray batch) {
    add(batch.length());
    batch.close();
    if (more > 0) {
      subscription.request(more);
    }
  }

  @Override
  public void onError(Throwable thrown) {
    error = thrown;
    add(thrown instanceof FletchingException ? -((FletchingException) thrown).errno() : -1000);
    over.countDown();
  }

  @Override
  public void onComplete() {
    add(0);
    over.countDown();
  }

  private synchronized void add(long row) {
    rows.add(row);
  }

  synchronized List<Long> rows() {
    return new ArrayList<>(rows);
  }

  /** Returns the error that ended the stream, or null. */
  public final Throwable error() {
    return error;
  }

  /** Waits for the end of the stream and returns the records. */
  public final List<Long> await() {
    try {
      if (!over.await(60, TimeUnit.SECONDS)) {
        throw new IllegalStateException("no end: " + rows());
      }
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
    return rows();
  }
}
