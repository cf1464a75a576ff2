// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayStream;
import io.github.fletching.ArrayView;
import io.github.fletching.AsyncDeviceStream;
import io.github.fletching.AsyncDeviceStreams;
import io.github.fletching.BatchStream;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.DeviceStream;
import io.github.fletching.DlpackExportOptions;
import io.github.fletching.FletchingException;
import io.github.fletching.ImportedTensor;
import io.github.fletching.ReplayedStreams;
import io.github.fletching.Schema;
import io.github.fletching.SchemaView;
import io.github.fletching.Shared;
import io.github.fletching.SyncEvent;
import io.github.fletching.Tensor;
import io.github.fletching.VulkanContext;
import io.github.fletching.Waiter;
import io.github.fletching.Waiters;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.NativeLibraries;
import io.github.fletching.testing.suite.Conformance.Passage;
import io.github.fletching.testing.suite.Conformance.Subject;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Flow;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * The library as two subjects of the conformance suite: one exports views and sends iterators, the
 * other builds schemas and arrays and sends publishers.
 */
public final class ConformanceSubject {
  private static final int NOT_AN_ERRNO = -1;
  private static final int MESSAGE = 1024; // bytes, with the NUL
  private static final int SECONDS = 60; // timeout for a stream that never ends, which is a failure

  private static final AtomicInteger ATTACHED = new AtomicInteger(); // objects that are still open
  private static final Queue<CompletionStage<Void>> SENT = new ConcurrentLinkedQueue<>();

  private static volatile VulkanContext vulkan; // set by useVulkan; null until then

  private ConformanceSubject() {}

  /** Returns the subject that exports views and sends iterators. */
  public static Subject views() {
    return views("java");
  }

  /** Returns the same subject with another name. */
  public static Subject views(String name) {
    Subject subject = common(name, Conformance.CHECKS_SCHEMAS | Conformance.CHECKS_FORMATS);
    subject.schema = passage(ConformanceSubject::viewSchema);
    subject.array =
        (context, schema, array, outSchema, out, message) ->
            answer(message, () -> viewArray(schema, array, outSchema, out));
    subject.child =
        (context, schema, array, index, out, message) ->
            answer(message, () -> takeChild(schema, array, index, out));
    subject.stream =
        passage(
            (in, out) ->
                use(
                    ArrayStream.wrap(in),
                    (schema, stream) -> ArrayStream.of(schema, stream).moveTo(out)));
    subject.deviceStream =
        passage(
            (in, out) ->
                use(
                    DeviceArrayStream.wrap(in),
                    (schema, stream) ->
                        DeviceArrayStream.of(schema, stream.deviceType(), stream).moveTo(out)));
    subject.receive =
        (context, connect, connectContext, out, message) ->
            answer(message, () -> receive(0, connect, connectContext, out));
    subject.send =
        passage(
            (in, handler) ->
                use(
                    DeviceArrayStream.wrap(in),
                    (schema, stream) ->
                        SENT.add(
                            AsyncDeviceStreams.send(
                                schema,
                                stream.deviceType(),
                                stream,
                                ForkJoinPool.commonPool(),
                                handler))));
    return subject;
  }

  static Subject builders() {
    Subject subject =
        common("java-builders", Conformance.CHECKS_SCHEMAS | Conformance.CHECKS_ARRAYS);
    subject.schema = passage(ConformanceSubject::copySchema);
    subject.array =
        (context, schema, array, outSchema, out, message) ->
            answer(message, () -> copyArray(schema, array, outSchema, out));
    subject.child =
        (context, schema, array, index, out, message) ->
            answer(message, () -> column(schema, array, index, out));
    subject.stream =
        passage(
            (in, out) ->
                use(
                    ArrayStream.wrap(in),
                    (schema, stream) ->
                        ArrayStream.of(
                                schema,
                                new Batches<>(stream.stream().map(a -> a.toDevice().toHost())))
                            .moveTo(out)));
    subject.deviceStream =
        passage(
            (in, out) ->
                use(
                    DeviceArrayStream.wrap(in),
                    (schema, stream) ->
                        DeviceArrayStream.of(
                                schema,
                                stream.deviceType(),
                                new Batches<>(stream.stream().map(ConformanceSubject::view)))
                            .moveTo(out)));
    subject.receive =
        (context, connect, connectContext, out, message) ->
            answer(message, () -> receive(16, connect, connectContext, out));
    subject.send =
        passage(
            (in, handler) ->
                use(
                    DeviceArrayStream.wrap(in),
                    (schema, stream) ->
                        SENT.add(
                            AsyncDeviceStreams.send(
                                schema, stream.deviceType(), new Published(stream), handler))));
    return subject;
  }

  /** Waits until every sent stream has ended, then checks that every attached object is closed. */
  public static void finish() {
    for (CompletionStage<Void> next = SENT.poll(); next != null; next = SENT.poll()) {
      await(next.handle((none, error) -> null));
    }
    assertEquals(0, ATTACHED.get());
  }

  private static <T> T await(CompletionStage<T> stage) {
    return stage.toCompletableFuture().orTimeout(SECONDS, TimeUnit.SECONDS).join();
  }

  private interface Move {
    void run(long in, long out);
  }

  private static Passage passage(Move move) {
    return (context, in, out, message) -> answer(message, () -> move.run(in, out));
  }

  /** An exception without an errno value is a bug in the library, which the suite reports. */
  private static int answer(Pointer message, Runnable body) {
    try {
      body.run();
      return 0;
    } catch (Throwable thrown) {
      Throwable error = thrown instanceof CompletionException ? thrown.getCause() : thrown;
      boolean hasErrno = error instanceof FletchingException;
      String text = hasErrno ? error.getMessage() : error.toString();
      ByteBuffer room = message.getByteBuffer(0, MESSAGE - 1); // the rest is already zero
      StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text), room, true);
      return hasErrno ? ((FletchingException) error).errno() : NOT_AN_ERRNO;
    }
  }

  // --- Schemas and arrays

  private static void viewSchema(long in, long out) {
    try (Shared<Schema> shared = Schema.wrap(in).share();
        Schema view = shared.view()) {
      read(view.view());
      view.check();
      view.moveTo(out);
    }
  }

  private static void read(SchemaView schema) {
    schema.name();
    schema.metadata();
    for (int i = 0; i < schema.childCount(); i++) {
      read(schema.child(i));
    }
    if (!schema.dictionary().isReleased()) {
      read(schema.dictionary());
    }
  }

  private static void copySchema(long in, long out) {
    try (Schema schema = Schema.wrap(in)) {
      schema.view().toBuilder().build().moveTo(out);
    }
  }

  private static void viewArray(long schema, long array, long outSchema, long out) {
    try (Schema type = Schema.wrap(schema);
        DeviceArray view = view(DeviceArray.wrap(array))) {
      view.attach(ATTACHED::decrementAndGet);
      ATTACHED.incrementAndGet();
      view.moveTo(out);
      type.moveTo(outSchema);
    }
  }

  /** Returns a view, and closes the array that the view keeps alive. */
  private static DeviceArray view(DeviceArray array) {
    try (array;
        Shared<DeviceArray> shared = array.share()) {
      return shared.view();
    }
  }

  private static void copyArray(long schema, long array, long outSchema, long out) {
    try (Schema type = Schema.wrap(schema)) {
      DeviceArray source = DeviceArray.wrap(array);
      try {
        source.check(type);
        copy(source.view())
            .buildOn(source.deviceType(), source.deviceId(), source.syncEvent(), source)
            .moveTo(out);
      } catch (Throwable refusal) {
        source.close();
        throw refusal;
      }
      type.moveTo(outSchema);
    }
  }

  /** Builds another array over the same buffers. */
  private static ArrayBuilder copy(ArrayView view) {
    ArrayBuilder copy =
        new ArrayBuilder(view.length())
            .nullCount(view.nullCount())
            .offset(view.offset())
            .buffers(view.buffers());
    for (int i = 0; i < view.childCount(); i++) {
      copy.child(copy(view.child(i)));
    }
    ArrayView values = view.dictionary();
    return values.isReleased() ? copy : copy.dictionary(copy(values));
  }

  private static int clamped(long index) {
    return (int) Math.max(-1, Math.min(index, Integer.MAX_VALUE));
  }

  private static void takeChild(long schema, long array, long index, long out) {
    Schema.wrap(schema).close();
    try (DeviceArray parent = DeviceArray.wrap(array)) {
      parent.buffers();
      Releases.errorOf(() -> parent.takeDictionary().close()); // most arrays have no dictionary
      parent.takeChild(clamped(index)).moveTo(out);
    }
  }

  private static void column(long schema, long array, long index, long out) {
    Schema.wrap(schema).close();
    try (Shared<DeviceArray> parent = DeviceArray.wrap(array).share()) {
      parent.column(clamped(index)).moveTo(out);
    }
  }

  private static void tensor(Tensor tensor, long out) {
    try (ImportedTensor imported = tensor.toDeviceArray()) {
      boolean isLegacy = tensor.isLegacy();
      DlpackExportOptions options = DlpackExportOptions.defaults();
      Tensor again =
          isLegacy
              ? imported.array().toLegacyDlpack(imported.schema(), options.writable())
              : imported.array().toDlpack(imported.schema(), options);
      again.moveTo(out);
    }
  }

  // --- Events, and functions that both subjects share

  private static Subject common(String name, int promises) {
    Subject subject = new Subject(name, promises);
    subject.tensor = passage((in, out) -> tensor(Tensor.wrap(in), out));
    subject.legacyTensor = passage((in, out) -> tensor(Tensor.wrapLegacy(in), out));
    subject.synchronize =
        (context, array, message) ->
            answer(message, () -> borrow(array, ConformanceSubject::synchronize));
    subject.isReady =
        passage(
            (array, ready) ->
                borrow(array, owner -> new Pointer(ready).setInt(0, isReady(owner) ? 1 : 0)));
    subject.waitOn = passage((array, stream) -> borrow(array, owner -> waitOn(owner, stream)));
    subject.exportWithEvent =
        passage(
            (array, stream) -> borrow(array, owner -> owner.exportWithEvent(on(owner, stream))));
    subject.releaseAfter =
        passage(
            (array, stream) -> {
              DeviceArray owner = DeviceArray.wrap(array);
              owner.releaseAfter(on(owner, stream));
            });
    subject.useVulkan =
        (context, device, queue, setStages, getDeviceProcAddr, message) ->
            answer(message, () -> useVulkan(device, queue, setStages, getDeviceProcAddr));
    subject.registerWaiter =
        (context, deviceType, waiter, message) ->
            answer(
                message,
                () -> Waiters.register(DeviceType.of(deviceType), new ForeignWaiter(waiter)));
    subject.producer =
        (context, handler, out, message) ->
            answer(message, () -> ReplayedStreams.produce(handler, out));
    subject.consumer =
        (context, notify, notifyContext, out, message) ->
            answer(message, () -> ReplayedStreams.consume(notify, notifyContext, out));
    return subject;
  }

  private static void useVulkan(long device, long queue, int setStages, long getDeviceProcAddr) {
    NativeLibraries.open("libfletching.so.0.1"); // the waits call it
    vulkan = VulkanContext.of(device, getDeviceProcAddr).onQueue(queue, queue, setStages);
  }

  private static boolean isOfVulkan(DeviceArray array) {
    return array.deviceType().equals(DeviceType.VULKAN);
  }

  private static void synchronize(DeviceArray array) {
    if (isOfVulkan(array)) {
      array.synchronize(vulkan);
    } else {
      array.synchronize();
    }
  }

  private static boolean isReady(DeviceArray array) {
    return isOfVulkan(array) ? array.isReady(vulkan) : array.isReady();
  }

  private static void waitOn(DeviceArray array, long stream) {
    if (isOfVulkan(array)) {
      array.waitOn(vulkan, stream);
    } else {
      array.waitOn(on(array, stream));
    }
  }

  /** A FletchingWaiter (cpp/include/fletching/waiter.h) as a Waiter. */
  private static final class ForeignWaiter implements Waiter {
    private static final int WORD = 8;

    private final Pointer waiter;

    ForeignWaiter(Pointer waiter) {
      this.waiter = waiter;
    }

    @Override
    public void synchronize(SyncEvent event) {
      call(0, event);
    }

    @Override
    public void waitOn(SyncEvent event, DeviceStream stream) {
      call(1, event, stream.handle());
    }

    @Override
    public boolean isReady(SyncEvent event) {
      IntByReference ready = new IntByReference();
      call(2, event, ready);
      return ready.getValue() != 0;
    }

    /** Calls one of the three functions; the struct's last member is their context. */
    private void call(int index, SyncEvent event, Object... more) {
      try (Memory message = new Memory(MESSAGE)) {
        message.clear();
        List<Object> arguments = new ArrayList<>();
        Collections.addAll(arguments, waiter.getPointer(3 * WORD), event.address(), 0L);
        Collections.addAll(arguments, more);
        arguments.add(message);
        Function function = Function.getFunction(waiter.getPointer((long) index * WORD));
        int code = function.invokeInt(arguments.toArray());
        if (code != 0) {
          throw new FletchingException(code, message.getString(0));
        }
      }
    }
  }

  /** Wraps an array for one call, and moves it back afterwards. */
  private static void borrow(long array, Consumer<DeviceArray> call) {
    DeviceArray owner = DeviceArray.wrap(array);
    try {
      call.accept(owner);
    } finally {
      owner.moveTo(array);
    }
  }

  private static DeviceStream on(DeviceArray array, long stream) {
    return DeviceStream.of(array.deviceType(), stream);
  }

  // --- Streams

  private interface Use<S> {
    void run(Schema schema, S stream);
  }

  /**
   * Passes the schema and the stream to the body, which takes ownership of both; closes both if it
   * throws.
   */
  private static <S extends BatchStream<?>> void use(S stream, Use<S> body) {
    try (Schema schema = stream.schema()) {
      body.run(schema, stream);
    } catch (Throwable refusal) {
      stream.close();
      throw refusal;
    }
  }

  /** Iterator that closes its source. */
  private static final class Batches<B> implements Iterator<B>, AutoCloseable {
    private final Stream<B> source;
    private final Iterator<B> batches;

    Batches(Stream<B> source) {
      this.source = source;
      batches = source.iterator();
    }

    @Override
    public boolean hasNext() {
      return batches.hasNext();
    }

    @Override
    public B next() {
      return batches.next();
    }

    @Override
    public void close() {
      source.close();
    }
  }

  // --- Async streams

  private static void receive(int window, Pointer connect, Pointer connectContext, long out) {
    AsyncDeviceStream stream = new AsyncDeviceStream(window);
    try {
      Object[] arguments = {connectContext, stream.handlerAddress()};
      int code = Function.getFunction(connect).invokeInt(arguments);
      if (code != 0) {
        stream.releaseHandler();
        throw new FletchingException(code, "connect: refused: expected a producer");
      }
      try (Schema schema = await(stream.schema())) {
        Received batches = new Received(stream);
        stream.subscribe(batches);
        DeviceArrayStream.of(schema, stream.deviceType(), batches).moveTo(out);
      }
    } catch (Throwable refusal) {
      stream.close();
      throw refusal;
    }
  }

  /** Iterator that requests one batch at a time and waits for it. */
  private static final class Received
      implements Flow.Subscriber<DeviceArray>, Iterator<DeviceArray>, AutoCloseable {
    private static final Object END = new Object();

    private final AsyncDeviceStream stream;
    private final LinkedBlockingQueue<Object> arrived = new LinkedBlockingQueue<>();
    private Flow.Subscription subscription;
    private Object next; // a batch, an error or the end; null while waiting
    private boolean isClosed;

    Received(AsyncDeviceStream stream) {
      this.stream = stream;
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
      subscription = given;
      given.request(1);
    }

    @Override
    public synchronized void onNext(DeviceArray batch) {
      if (isClosed) {
        batch.close();
      } else {
        arrived.add(batch);
      }
    }

    @Override
    public void onError(Throwable error) {
      arrived.add(error);
    }

    @Override
    public void onComplete() {
      arrived.add(END);
    }

    @Override
    public boolean hasNext() {
      try {
        next = next == null ? arrived.poll(SECONDS, TimeUnit.SECONDS) : next;
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
      if (next == null) {
        throw new IllegalStateException("no batch and no end");
      }
      if (next instanceof RuntimeException) {
        throw (RuntimeException) next;
      }
      return next != END;
    }

    @Override
    public DeviceArray next() {
      DeviceArray batch = (DeviceArray) next;
      next = null;
      subscription.request(1);
      return batch;
    }

    @Override
    public void close() {
      synchronized (this) {
        isClosed = true;
      }
      stream.close();
      for (Object each : arrived) {
        if (each instanceof DeviceArray) {
          ((DeviceArray) each).close();
        }
      }
    }
  }

  /** Publishes a stream on the requesting thread. */
  private static final class Published implements Flow.Publisher<DeviceArray>, Flow.Subscription {
    private final DeviceArrayStream stream;
    private Flow.Subscriber<? super DeviceArray> subscriber;

    Published(DeviceArrayStream stream) {
      this.stream = stream;
    }

    @Override
    public void subscribe(Flow.Subscriber<? super DeviceArray> given) {
      subscriber = given;
      given.onSubscribe(this);
    }

    @Override
    public void request(long n) {
      try {
        for (long i = 0; i < n && stream.hasNext(); i++) {
          subscriber.onNext(stream.next());
        }
        if (stream.hasNext()) {
          return;
        }
        subscriber.onComplete();
      } catch (FletchingException error) {
        subscriber.onError(error);
      }
      stream.close();
    }

    @Override
    public void cancel() {
      stream.close();
    }
  }
}
