// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.Flow;

/** Batches and errors as an iterator, or as a publisher that never completes. */
final class AsyncItems
    implements Iterator<AsyncBatch>, Flow.Publisher<AsyncBatch>, Flow.Subscription, AutoCloseable {
  private final ArrayDeque<Object> items;
  private Flow.Subscriber<? super AsyncBatch> subscriber;
  boolean isClosed;

  AsyncItems(List<Object> items) {
    this.items = new ArrayDeque<>(items);
  }

  @Override
  public boolean hasNext() {
    return !items.isEmpty();
  }

  @Override
  public AsyncBatch next() {
    Object item = items.poll();
    if (item instanceof Throwable) {
      throw AsyncItems.<RuntimeException>sneaky((Throwable) item);
    }
    return item instanceof AsyncBatch ? (AsyncBatch) item : AsyncBatch.of((DeviceArray) item);
  }

  @SuppressWarnings("unchecked")
  static <T extends Throwable> RuntimeException sneaky(Throwable thrown) throws T {
    throw (T) thrown;
  }

  @Override
  public void close() {
    isClosed = true;
    items.stream()
        .filter(item -> item instanceof DeviceArray)
        .forEach(item -> ((DeviceArray) item).close());
    items.clear();
  }

  @Override
  public void subscribe(Flow.Subscriber<? super AsyncBatch> given) {
    subscriber = given;
    given.onSubscribe(this);
  }

  @Override
  public void request(long n) {
    for (long i = 0; i < n && hasNext(); i++) {
      subscriber.onNext(next());
    }
  }

  @Override
  public void cancel() {
    close();
  }
}
