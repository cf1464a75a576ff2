// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.fail;

import io.github.fletching.AsyncRows.LiveBatches;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Many streams on several threads, each ending in one of several ways at a random time.
 * FLETCHING_ASYNC_STREAMS sets the number of streams.
 */
@Timeout(600)
class AsyncStressTest {
  private static final int THREADS = 4;

  /** How a producer ends, with the error code that the consumer gets. */
  private enum ProducerEnd {
    REGULARLY(0),
    WITH_ERROR(71),
    THROWING(5),
    UNMADE(12); // creating one batch fails

    final int code;

    ProducerEnd(int code) {
      this.code = code;
    }
  }

  /** How a consumer ends before the producer does. */
  private enum ConsumerEnd {
    NOT,
    CANCELS,
    CLOSES
  }

  private final LiveBatches live = new LiveBatches();
  private final ExecutorService pool = Executors.newFixedThreadPool(THREADS);

  /** The parameters of one stream. */
  private final class StreamPlan {
    final Random random;
    final int count;
    final ProducerEnd ending;
    final ConsumerEnd leaving;
    final int window;
    final int takes;
    final boolean publishes;

    StreamPlan(long seed) {
      random = new Random(seed * 0x9E3779B97F4A7C15L);
      count = random.nextInt(30);
      ending = ProducerEnd.values()[random.nextInt(4)];
      leaving = random.nextInt(3) > 0 ? ConsumerEnd.NOT : ConsumerEnd.values()[random.nextInt(3)];
      window = random.nextInt(3) == 0 ? 0 : random.nextInt(8);
      takes = random.nextInt(20);
      publishes = random.nextBoolean();
    }

    private List<Object> items() {
      List<Object> items = new ArrayList<>();
      for (int row = 1; row <= count; row++) {
        int rows = row;
        items.add(row % 3 == 0 ? AsyncBatch.made(() -> live.batch(rows)) : live.batch(rows));
      }
      if (ending == ProducerEnd.UNMADE) {
        items.add(AsyncBatch.made(() -> null).with(Metadata.EMPTY.with("a", "b")));
      } else if (ending != ProducerEnd.REGULARLY) {
        boolean errno = ending == ProducerEnd.WITH_ERROR;
        items.add(errno ? new FletchingException(71, "disk") : new IllegalStateException("lost"));
      }
      return items;
    }

    void run() {
      AsyncDeviceStream stream = new AsyncDeviceStream(window);
      AsyncRows rows = new Rows(this, stream);
      Executor executor = random.nextBoolean() ? pool : AsyncDeviceStreams.executor();
      AsyncSending<AsyncBatch> sending =
          new AsyncSending<>(
              stream.handlerAddress(),
              DeviceType.CPU,
              Metadata.EMPTY,
              executor,
              Function.identity());
      boolean early = random.nextBoolean();
      if (early) {
        stream.subscribe(rows);
      }
      AsyncItems items = new AsyncItems(items());
      if (publishes) {
        sending.open(AsyncRows.schema());
        new SyncSubscription(items).subscribe(sending);
      } else {
        sending.iterator = items;
        sending.open(AsyncRows.schema());
      }
      if (!early) {
        stream.subscribe(rows);
      }
      if (leaving == ConsumerEnd.CLOSES) {
        stream.close();
      }
      Throwable result = resultOf(sending.done);
      List<Long> found =
          leaving == ConsumerEnd.NOT || leaving == ConsumerEnd.CLOSES ? rows.await() : null;
      stream.close();
      if (found != null && leaving == ConsumerEnd.NOT) {
        check(found, result);
      }
    }

    private void check(List<Long> rows, Throwable result) {
      long last = -rows.get(rows.size() - 1);
      int expected = ending == ProducerEnd.UNMADE ? FletchingException.EINVAL : ending.code;
      if (last != expected) {
        fail("the end is " + last + ": " + this + rows + result);
      }
      for (int i = 0; i < rows.size() - 1; i++) {
        assertEquals(i + 1, rows.get(i), () -> "order: " + rows);
      }
      if (ending == ProducerEnd.REGULARLY) {
        assertEquals(count, rows.size() - 1, () -> "batches were lost: " + rows);
      }
    }

    @Override
    public String toString() {
      return ending + " " + leaving + " of " + count + ", window " + window + " ";
    }
  }

  /** Subscriber that leaves as the plan says. */
  private static final class Rows extends AsyncRows {
    private final StreamPlan plan;
    private final AsyncDeviceStream stream;
    private int taken;

    Rows(StreamPlan plan, AsyncDeviceStream stream) {
      super(1 + plan.random.nextInt(5), 1);
      this.plan = plan;
      this.stream = stream;
    }

    @Override
    public void onNext(DeviceArray batch) {
      super.onNext(batch);
      if (taken++ < plan.takes) {
        return;
      }
      if (plan.leaving == ConsumerEnd.CANCELS) {
        subscription.cancel();
      } else if (plan.leaving == ConsumerEnd.CLOSES) {
        stream.close();
      }
    }
  }

  /** Publishes on the requesting thread and ends the stream. */
  private static final class SyncSubscription implements Flow.Subscription {
    private final AsyncItems items;
    private Flow.Subscriber<? super AsyncBatch> subscriber;
    private boolean over;

    SyncSubscription(AsyncItems items) {
      this.items = items;
    }

    void subscribe(Flow.Subscriber<? super AsyncBatch> given) {
      subscriber = given;
      given.onSubscribe(this);
    }

    @Override
    public void request(long n) {
      try {
        for (long i = 0; i < n && items.hasNext() && !over; i++) {
          subscriber.onNext(items.next());
        }
        if (!items.hasNext() && !over) {
          over = true;
          subscriber.onComplete();
        }
      } catch (RuntimeException thrown) {
        over = true;
        subscriber.onError(thrown);
      }
    }

    @Override
    public void cancel() {
      over = true;
      items.close();
    }
  }

  private static Throwable resultOf(CompletableFuture<Void> done) {
    try {
      done.join();
      return null;
    } catch (CompletionException e) {
      return e.getCause();
    }
  }

  @Test
  void manyStreamsEndWithoutLeak() throws Exception {
    String text = System.getenv("FLETCHING_ASYNC_STREAMS");
    int count = text == null ? 1000 : Integer.parseInt(text);
    int handles = Handles.count();
    long leaks = Owner.leaks();
    AtomicInteger next = new AtomicInteger();
    List<CompletableFuture<Void>> runs = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      runs.add(
          CompletableFuture.runAsync(
              () -> {
                for (int seed = next.incrementAndGet();
                    seed <= count;
                    seed = next.incrementAndGet()) {
                  new StreamPlan(seed).run();
                }
              },
              job -> new Thread(job).start()));
    }
    runs.forEach(CompletableFuture::join);
    pool.shutdown();
    assertEquals(0, live.get());
    assertEquals(handles, Handles.count());
    System.gc();
    assertEquals(leaks, Owner.leaks());
  }
}
