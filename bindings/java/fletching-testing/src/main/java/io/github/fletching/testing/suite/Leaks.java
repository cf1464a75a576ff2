// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayStream;
import io.github.fletching.AsyncBatch;
import io.github.fletching.AsyncDeviceStream;
import io.github.fletching.AsyncDeviceStreams;
import io.github.fletching.DeviceArray;
import io.github.fletching.FletchingException;
import io.github.fletching.Metadata;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.Shared;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.Counting;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.Flow;
import java.util.stream.IntStream;

/** A program on the engine that counts: what is released is freed once. */
public final class Leaks {
  private static final Metadata OF_BATCH = Metadata.EMPTY.with("key", "the value of a batch");

  private Leaks() {}

  /** Prints how many allocations the second use leaves; the first one leaves slots. */
  public static void main(String[] arguments) {
    use();
    int before = Counting.live();
    use();
    System.out.println("slabs " + (before > 0));
    System.out.println("sent " + send());
    Counting.refuse(OF_BATCH.encode().length);
    System.out.println("refused " + send());
    System.out.println("left " + (Counting.live() - before) + " " + Counting.problems());
  }

  private static void use() {
    schemas();
    Array array = ArrayRules.batch(3).build(null);
    Array child = array.takeChild(2);
    array.close();
    child.close();
    try (DeviceArray parent = ArrayRules.batch(2).buildOn(DeviceType.CUDA, 0, 0x1000, null);
        DeviceArray first = parent.takeChild(0);
        Shared<DeviceArray> shared = first.share();
        DeviceArray view = shared.view()) {
      view.attach("an object");
    }
    send();
    read(null);
    read(new FletchingException(28, "a text"));
  }

  /** Sends a batch with metadata; returns what its subscriber was called with. */
  private static List<String> send() {
    List<String> signals = new ArrayList<>();
    ArrayDeque<Runnable> jobs = new ArrayDeque<>();
    AsyncDeviceStream stream = new AsyncDeviceStream();
    stream.subscribe(new Signals(signals));
    AsyncDeviceStreams.send(
        new SchemaBuilder("n").build(),
        DeviceType.CPU,
        Metadata.EMPTY.with("key", "value"),
        Leaks::publish,
        jobs::add,
        stream.handlerAddress());
    for (Runnable job = jobs.poll(); job != null; job = jobs.poll()) {
      job.run();
    }
    stream.close();
    return signals;
  }

  private static final class Signals implements Flow.Subscriber<DeviceArray> {
    private final List<String> all;

    Signals(List<String> all) {
      this.all = all;
    }

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
      subscription.request(2);
    }

    @Override
    public void onNext(DeviceArray batch) {
      all.add("batch");
      batch.close();
    }

    @Override
    public void onError(Throwable thrown) {
      all.add(thrown.getMessage());
    }

    @Override
    public void onComplete() {
      all.add("end");
    }
  }

  private static void publish(Flow.Subscriber<? super AsyncBatch> subscriber) {
    AsyncBatch batch = AsyncBatch.of(new ArrayBuilder(1).buildOn(DeviceType.CPU, 0, 0, null));
    subscriber.onNext(batch.with(OF_BATCH));
    subscriber.onComplete();
  }

  private static void schemas() {
    Metadata metadata = Metadata.EMPTY.with("key", "value");
    try (Schema schema = SchemaRules.tree().metadata(metadata).build();
        Schema copy = schema.view().toBuilder().build();
        Shared<Schema> shared = copy.share()) {
      shared.column(1).close();
    }
  }

  /** Two batches and the end or a failure, through C. */
  private static void read(FletchingException failure) {
    Iterator<Array> batches =
        IntStream.iterate(1, i -> i + 1)
            .takeWhile(i -> failure != null || i <= 2)
            .mapToObj(i -> next(i, failure))
            .iterator();
    Raw raw = Raw.stream();
    ArrayStream.of(new SchemaBuilder("i").build(), batches).moveTo(raw.address());
    for (int i = 0; i < 4; i++) { // get_schema frees the text of an error before it
      Raw schema = Raw.schema();
      raw.call("get_schema", schema);
      schema.release();
      Raw batch = Raw.array();
      if (raw.call("get_next", batch) == 0 && !batch.isReleased()) {
        batch.release();
      }
    }
    raw.call("get_next", Raw.array()); // what is left of the error is freed with the stream
    raw.release();
  }

  private static Array next(int index, FletchingException failure) {
    if (index > 2) {
      throw failure;
    }
    return new ArrayBuilder(index).buffers(0, 0).build(null);
  }
}
