// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.ENOMEM;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayStream;
import io.github.fletching.AsyncBatch;
import io.github.fletching.AsyncDeviceStream;
import io.github.fletching.AsyncDeviceStreams;
import io.github.fletching.DataType;
import io.github.fletching.DeviceArray;
import io.github.fletching.DlpackExchange;
import io.github.fletching.DlpackImportOptions;
import io.github.fletching.FletchingException;
import io.github.fletching.ImportedTensor;
import io.github.fletching.Metadata;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.Shared;
import io.github.fletching.Tensor;
import io.github.fletching.TensorBuilder;
import io.github.fletching.abi.DataTypeCode;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;
import io.github.fletching.testing.CountingEngine;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.Flow;
import java.util.stream.IntStream;

/** A program on the counting engine: released memory is freed exactly once. */
public final class Leaks {
  private static final Metadata OF_BATCH = Metadata.EMPTY.with("key", "the value of a batch");
  private static final long SLAB = 64L * 80; // the slots of one array allocation

  private static final DlpackImportOptions COPIES = DlpackImportOptions.defaults().copyStrided();

  private Leaks() {}

  /** Prints the report. */
  public static void main(String[] arguments) {
    System.out.println(report());
  }

  /** Reports the leftovers when each allocation fails once; slots persist from the first use. */
  static String report() {
    int unsent = sendWithoutMemory();
    useOnce();
    boolean kept = keepsWhatItCannotShare();
    int before = CountingEngine.live();
    int handles = Handles.count();
    int ofEmpty;
    try (Array empty = new ArrayBuilder(0).build(null)) {
      ofEmpty = CountingEngine.live() - before + (int) empty.length();
    }
    useOnce();
    int failures = 0;
    while (useFails(failures + 1)) {
      failures++;
    }
    List<String> signals = send(Leaks::publish);
    CountingEngine.refuse(OF_BATCH.encode().length);
    signals.addAll(send(Leaks::publish));
    CountingEngine.refuse(-1);
    signals.addAll(send(Leaks::fail));
    String events = releaseWithoutMemory(Gpu.cuda("standin"));
    events += ", " + releaseWithoutMemory(Gpu.hip("standin"));
    return String.format(
        "events %s, unsent %d, slabs %b, of an empty array %d, kept %b, failures %b, signals %s,"
            + " left %d and %d, problems %s",
        events,
        unsent,
        before > 0,
        ofEmpty,
        kept,
        failures > 10,
        signals,
        CountingEngine.live() - before,
        Handles.count() - handles,
        CountingEngine.problems());
  }

  /**
   * Returns the number of leaked allocations after the first stream, whose producer allocation
   * fails.
   */
  private static int sendWithoutMemory() {
    Memory handler = new Memory(64);
    handler.clear();
    new SchemaBuilder("n").build().close();
    int before = CountingEngine.live();
    Schema schema = new SchemaBuilder("n").build();
    Metadata metadata = Metadata.EMPTY.with("key", "value");
    CountingEngine.refuse(handler.size());
    try {
      AsyncDeviceStreams.send(
          schema,
          DeviceType.CPU,
          metadata,
          Leaks::publish,
          Runnable::run,
          Pointer.nativeValue(handler));
    } catch (FletchingException e) { // not thrown if an earlier stream left a block
      schema.address(); // throws if the schema was moved
    }
    CountingEngine.refuse(-1);
    schema.close();
    return CountingEngine.live() - before;
  }

  /** Returns whether an array is unchanged after the allocation for its share fails. */
  private static boolean keepsWhatItCannotShare() {
    List<Array> others = new ArrayList<>();
    Array array = new ArrayBuilder(1).build(null);
    CountingEngine.refuse(SLAB);
    try {
      while (others.size() < 10_000) {
        others.add(new ArrayBuilder(0).build(null));
      }
    } catch (FletchingException e) { // all slots are in use
      Releases.assertFails(ENOMEM, array::share, "no memory");
    }
    CountingEngine.refuse(-1);
    others.forEach(Array::close);
    boolean kept = !others.isEmpty() && !array.isReleased();
    array.close();
    return kept;
  }

  /**
   * Runs {@link #use} with the nth allocation failing; returns whether there is an nth allocation.
   */
  private static boolean useFails(int nth) {
    CountingEngine.failAt(nth);
    try {
      use();
    } catch (FletchingException e) {
      if (e.errno() != ENOMEM) {
        throw e;
      }
    }
    return CountingEngine.failAt(0) == 0;
  }

  private static void use() {
    schemas();
    try (Array array = Raw.batch(3).build(null);
        Array child = array.takeChild(2)) {
      child.length();
    }
    try (DeviceArray parent = Raw.batch(2).buildOn(DeviceType.CUDA, 0, 0x1000, null);
        DeviceArray first = parent.takeChild(0);
        Shared<DeviceArray> shared = first.share();
        DeviceArray view = shared.view()) {
      view.attach("an object");
    }
    tensors();
    read(null);
    read(new FletchingException(28, "a text"));
  }

  /** Exports an array, and imports it with and without a copy. Each tensor must be deleted once. */
  private static void tensors() {
    DataType type = DataType.of(DataTypeCode.INT, 32);
    Memory memory = new Memory(32);
    long values = Pointer.nativeValue(memory);
    TensorBuilder builder = new TensorBuilder(type, 2, 2).data(values);
    for (long stride : new long[] {2, 4}) {
      ForeignTensor foreign = ForeignTensor.of(type, values, 2, 2).strides(stride, 1);
      try (ImportedTensor imported = foreign.take().toDeviceArray(COPIES);
          Tensor tensor = imported.array().toDlpack(imported.schema())) {
        tensor.address();
      } finally {
        foreign.assertDeletedOnce();
      }
    }
    builder.build(null).close();
    DlpackExchange.ofJava().allocate(builder).close();
  }

  /** Includes operations that cannot report ENOMEM, because they release. */
  private static void useOnce() {
    use();
    send(Leaks::publish);
    send(Leaks::fail);
    events(Gpu.cuda("standin"));
    events(Gpu.hip("standin"));
  }

  /** While every allocation fails, events are still destroyed and arrays released. */
  private static String releaseWithoutMemory(Gpu gpu) {
    Gpu.Gated gated = gpu.new Gated();
    long events = gpu.events();
    long leaked = DeviceArray.pendingReleases().leakedEvents();
    Releases releases = new Releases();
    DeviceArray array = releases.array(gpu.type);
    array.exportWithEvent(gated.ofProducer());
    gated.shut();
    releases.array(gpu.type).releaseAfter(gated.ofProducer());
    CountingEngine.refuseAll(true);
    array.close();
    gated.open();
    releases.waitFor(2);
    gpu.settleReleases();
    long left = gpu.events() - events;
    CountingEngine.refuseAll(false);
    gated.end();
    return left + " and " + (DeviceArray.pendingReleases().leakedEvents() - leaked);
  }

  private static void events(Gpu gpu) {
    Gpu.Gated gated = gpu.new Gated();
    try (DeviceArray array = new Releases().array(gpu.type)) {
      CountingEngine.failAt(1);
      Releases.assertFails(ENOMEM, () -> array.exportWithEvent(gated.ofProducer()), "no memory");
      array.exportWithEvent(gated.ofProducer());
      array.waitOn(gated.ofConsumer());
      array.synchronize();
      array.isReady();
    } finally {
      gated.end();
    }
  }

  /** Sends a stream with metadata; returns the subscriber's signals. */
  private static List<String> send(Flow.Publisher<AsyncBatch> batches) {
    List<String> signals = new ArrayList<>();
    ArrayDeque<Runnable> jobs = new ArrayDeque<>();
    AsyncDeviceStream stream = new AsyncDeviceStream();
    stream.subscribe(new Signals(signals));
    AsyncDeviceStreams.send(
        new SchemaBuilder("n").build(),
        DeviceType.CPU,
        Metadata.EMPTY.with("key", "value"),
        batches,
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

  private static void fail(Flow.Subscriber<? super AsyncBatch> subscriber) {
    subscriber.onError(new FletchingException(28, "a text"));
  }

  private static void schemas() {
    Metadata metadata = Metadata.EMPTY.with("key", "value");
    try (Schema schema =
            new SchemaBuilder("+s")
                .child(new SchemaBuilder("i").name("a"))
                .child(new SchemaBuilder("c").name("d").dictionary(new SchemaBuilder("u")))
                .metadata(metadata)
                .build();
        Schema copy = schema.view().toBuilder().build();
        Shared<Schema> shared = copy.share()) {
      shared.column(1).close();
    }
  }

  /** Reads two batches and then the end or an error, through C. */
  private static void read(FletchingException failure) {
    Iterator<Array> batches =
        IntStream.iterate(1, i -> i + 1)
            .takeWhile(i -> failure != null || i <= 2)
            .mapToObj(i -> next(i, failure))
            .iterator();
    Raw raw = Raw.stream();
    try (Schema schema = new SchemaBuilder("+s").child(new SchemaBuilder("i")).build();
        ArrayStream stream = ArrayStream.of(schema, batches)) {
      stream.moveTo(raw.address());
    }
    for (int i = 0; i < 4; i++) { // get_schema frees the previous error message
      Raw schema = Raw.schema().fill(1);
      int code = raw.call("get_schema", schema);
      if (code == 0 && schema.isReleased()) {
        throw new AssertionError("get_schema: no error and no schema");
      }
      releaseIfLive(schema, code);
      Raw batch = Raw.array().fill(1);
      releaseIfLive(batch, raw.call("get_next", batch));
    }
    raw.call("get_next", Raw.array()); // the stream's release frees the last error message
    raw.release();
  }

  private static void releaseIfLive(Raw struct, int code) {
    if (code == 0 && !struct.isReleased()) {
      struct.release();
    }
    if (!struct.isReleased()) {
      throw new AssertionError("an error " + code + " and a struct");
    }
  }

  private static Array next(int index, FletchingException failure) {
    if (index > 2) {
      throw failure;
    }
    return new ArrayBuilder(index).buffers(0, 0).build(null);
  }
}
