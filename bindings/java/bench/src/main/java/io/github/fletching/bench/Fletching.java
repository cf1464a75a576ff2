// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.bench;

import io.github.fletching.ArrayBuilder;
import io.github.fletching.AsyncDeviceStream;
import io.github.fletching.AsyncDeviceStreams;
import io.github.fletching.DeviceArray;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.abi.DeviceType;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Flow;
import java.util.stream.IntStream;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** The cases on the safe layer; a system property selects the engine. */
@State(Scope.Thread)
public class Fletching {
  @Param("64")
  private long length;

  private long[] data;
  private Schema schema; // the leaf's schema, which a user already has
  private final ExecutorService producer = Executors.newSingleThreadExecutor();

  /** The owner of the data, closed with the array. */
  private static final class Data implements AutoCloseable {
    @Override
    public void close() {}
  }

  @Setup
  public void setUp() throws Throwable {
    Peer.setUp(length);
    data = Peer.data();
    schema = new SchemaBuilder("l").build();
  }

  @Benchmark
  public void take() {
    DeviceArray.wrap(Peer.leaf()).close();
  }

  @Benchmark
  public void tensor() {
    DeviceArray.wrap(Peer.leaf()).toDlpack(schema).toDeviceArray().close();
  }

  @Benchmark
  public void give() throws Throwable {
    hand(new ArrayBuilder(length).buffers(0, data[0]));
  }

  @Benchmark
  public void handoff() throws Throwable {
    ArrayBuilder batch = new ArrayBuilder(length).buffers(0);
    for (long address : data) {
      batch.child(new ArrayBuilder(length).buffers(0, address));
    }
    hand(batch);
  }

  @TearDown
  public void tearDown() {
    producer.shutdown();
  }

  /** A stream of 1,000 batches to a subscriber, both on one thread. */
  @Benchmark
  public void async() {
    AsyncDeviceStream stream = new AsyncDeviceStream(64);
    Closer closer = new Closer();
    stream.subscribe(closer);
    AsyncDeviceStreams.send(
        new SchemaBuilder("l").build(),
        DeviceType.CPU,
        IntStream.range(0, 1000).mapToObj(each -> DeviceArray.wrap(Peer.leaf())).iterator(),
        producer,
        stream.handlerAddress());
    closer.done.join();
  }

  private static final class Closer implements Flow.Subscriber<DeviceArray> {
    final CompletableFuture<Void> done = new CompletableFuture<>();

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
      subscription.request(Long.MAX_VALUE);
    }

    @Override
    public void onNext(DeviceArray batch) {
      batch.close();
    }

    @Override
    public void onError(Throwable error) {
      done.completeExceptionally(error);
    }

    @Override
    public void onComplete() {
      done.complete(null);
    }
  }

  private static void hand(ArrayBuilder builder) throws Throwable {
    builder.buildOn(DeviceType.CPU, -1, 0, new Data()).moveTo(Peer.raw());
    Peer.consume(Peer.raw());
  }
}
