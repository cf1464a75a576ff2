// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.DeviceType;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.stream.Collectors;

/** The publisher, the executor and the consumer of a producer. */
final class AsyncProducerReplay extends AsyncReplay implements AsyncForeign.Handler {
  private final long handler = AsyncForeign.handler(this);
  private final AsyncSending<AsyncBatch> sending;
  private final List<Runnable> jobs = new ArrayList<>(); // a dropped one would fail the stream
  private final List<Thing> batches = new ArrayList<>();
  private final List<Long> tasks = new ArrayList<>();
  private final List<Integer> codes = new ArrayList<>();
  private final Set<Integer> dropped = new HashSet<>();
  private final Set<Integer> failing = new HashSet<>(); // made when they are extracted
  private Thing known; // the schema
  private boolean stepping;
  private boolean released;
  private int errno;

  private AsyncProducerReplay(AsyncTrace trace) {
    super(trace);
    sending =
        new AsyncSending<>(handler, DeviceType.CPU, Metadata.EMPTY, jobs::add, Function.identity());
    trace.steps.stream()
        .filter(step -> step.event.equals("extract_fails"))
        .forEach(step -> failing.add(step.task));
  }

  static String play(AsyncTrace trace) {
    AsyncProducerReplay replay = new AsyncProducerReplay(trace);
    for (AsyncTrace.Step step = replay.next(); step != null; step = replay.next()) {
      replay.one(step);
    }
    return replay.finish();
  }

  private String finish() {
    if (!released) {
      fail("not released");
    }
    sending.free();
    FletchingException result = sending.result;
    if (!codes.isEmpty() && (result == null || result.errno() != codes.get(0))) {
      fail("expected the result " + codes + ", got " + result);
    }
    for (Thing batch : batches) {
      if (failing.contains(batch.number) && batch.hasMetNothing()) {
        batch.meets("freed"); // it was never made
      }
    }
    List<String> fates =
        batches.stream()
            .map(batch -> batch.fate(dropped.contains(batch.number) ? "dropped" : "discarded"))
            .collect(Collectors.toList());
    String schema = known == null ? "none" : known.fate("discarded");
    tasks.forEach(AsyncAbi::putBlock);
    AsyncForeign.freeHandler(handler);
    return compare(schema, fates, codes);
  }

  private void one(AsyncTrace.Step step) {
    perform(step, () -> step.beside == null ? act(step) : actBeside(step));
  }

  private int actBeside(AsyncTrace.Step step) {
    AtomicInteger result = new AtomicInteger();
    Thread thread = new Thread(() -> result.set(act(step)));
    thread.start();
    try {
      thread.join();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
    return result.get();
  }

  private int act(AsyncTrace.Step step) {
    switch (step.event) {
      case "schema_ready":
        known = new Thing(0);
        sending.open(schema(known));
        return 0;
      case "batch_ready":
        sending.onNext(batch());
        return 0;
      case "end_reached":
        sending.onComplete();
        return 0;
      case "failure":
        sending.onError(new FletchingException(step.errno, "the source has failed"));
        return 0;
      case "request":
      case "request_invalid":
        AsyncForeign.callRequest(sending.producer, step.n);
        return 0;
      case "cancel":
        AsyncForeign.callCancel(sending.producer);
        return 0;
      case "step":
        if (!stepping && !released) {
          stepping = true;
          released = sending.step() == AsyncSending.Due.RELEASE;
          stepping = false;
        }
        return 0;
      default:
        return extract(step);
    }
  }

  private static Schema schema(Thing thing) {
    Slot slot = Slot.take(Kind.SCHEMA);
    AsyncForeign.fill(Kind.SCHEMA, slot.address, () -> thing.meets("freed"));
    return new Schema(slot);
  }

  private AsyncBatch batch() {
    Thing batch = new Thing(batches.size());
    batches.add(batch);
    if (failing.contains(batch.number)) {
      return AsyncBatch.made(
          () -> {
            batch.meets("failed");
            throw new FletchingException(errno, "the data is lost");
          });
    }
    Slot slot = Slot.take(Kind.DEVICE_ARRAY);
    AsyncForeign.fill(Kind.DEVICE_ARRAY, slot.address, () -> batch.meets("freed"));
    return AsyncBatch.of(new DeviceArray(slot));
  }

  private int extract(AsyncTrace.Step step) {
    errno = step.errno;
    long task = tasks.get(step.task);
    if (step.event.equals("extract_drop")) {
      dropped.add(step.task);
      return AsyncForeign.callExtract(task, 0);
    }
    Slot out = Slot.take(Kind.DEVICE_ARRAY);
    int code = AsyncForeign.callExtract(task, out.address);
    if (step.event.equals("extract") == Kind.DEVICE_ARRAY.isReleased(out.address)) {
      fail("extract_data: an array and an error, or neither");
    }
    if (!Kind.DEVICE_ARRAY.isReleased(out.address)) {
      Kind.DEVICE_ARRAY.releaseOnce(out.address);
      if (!batches.get(step.task).isNow("freed", "extracted")) {
        fail("extract_data: another batch");
      }
    }
    out.free();
    return code;
  }

  /** Plays the steps that happen until the call returns. */
  private int called(String what) {
    happened(what);
    for (AsyncTrace.Step step = next(); step != null; step = next()) {
      if (step.event.startsWith("returns")) {
        perform(step, () -> 0);
        return step.errno;
      }
      one(step);
    }
    fail(what + " never returns");
    return FletchingException.EIO;
  }

  @Override
  public int onSchema(long schema) {
    int code = called("on_schema");
    if (code == 0) {
      Kind.SCHEMA.releaseOnce(schema);
      if (!known.isNow("freed", "taken")) {
        fail("on_schema: another schema");
      }
    }
    return code;
  }

  @Override
  public int onNextTask(long task, long metadata) {
    if (task == 0) {
      return called("on_next_task");
    }
    tasks.add(AsyncForeign.copyTask(task));
    return called("on_next_task " + (tasks.size() - 1));
  }

  @Override
  public void onError(int code, String message, long metadata) {
    if (message == null || message.isEmpty()) {
      fail("on_error without a text");
    }
    codes.add(code);
    called("on_error " + code);
  }

  @Override
  public void release() {
    called("release");
  }
}
