// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

/** The producer and the application of a consumer. */
final class AsyncConsumerReplay extends AsyncReplay implements AsyncForeign.Producer {
  private final AsyncHandler core = new AsyncHandler();
  private final long object = AsyncForeign.producer(this);
  private final long handler = core.expose();
  private final List<Thread> releases = new ArrayList<>();
  private FletchingException refusal;
  private Thing known; // the first schema
  private boolean refused;

  // With the lock of `told`.
  private final Object told = new Object();
  private final List<GivenTask> tasks = new ArrayList<>();
  private final List<AsyncExtraction> running = new ArrayList<>();
  private final List<Integer> codes = new ArrayList<>();
  private GivenTask arriving;
  private boolean cancelled;
  private final AtomicInteger inside = new AtomicInteger(); // calls of the consumer that play steps
  private boolean knowsSchema;
  private boolean knowsEnd;
  private boolean knowsError;

  private AsyncConsumerReplay(AsyncTrace trace) {
    super(trace);
    core.schemaCheck = schema -> refuse();
    core.taskCheck = metadata -> refuse();
    core.news = this::wake;
    C.putAddress(handler + AsyncAbi.PRODUCER, object);
  }

  private void refuse() {
    FletchingException error = refusal;
    refusal = null;
    if (error != null) {
      throw error;
    }
  }

  /** A task of the producer. */
  private final class GivenTask extends Thing implements AsyncForeign.Task {
    boolean isWrong; // its array is on another device than the stream
    int arrays;
    int released;

    GivenTask(int number) {
      super(number);
    }

    @Override
    public int extractData(long self, long out) {
      return extract(this, self, out);
    }

    synchronized void released() {
      released++;
    }
  }

  static String play(AsyncTrace trace) {
    AsyncConsumerReplay replay = new AsyncConsumerReplay(trace);
    for (AsyncTrace.Step step = replay.next(); step != null; step = replay.next()) {
      replay.one(step);
      String state = replay.core.state.name().toLowerCase(Locale.ROOT);
      if (!step.state.equals(state) && replay.isLast(step)) {
        replay.fail("expected the state " + step.state + ", got " + state);
      }
    }
    return replay.finish();
  }

  private void one(AsyncTrace.Step step) {
    boolean inside = "extract_data".equals(step.within) && !running.isEmpty();
    perform(step, () -> inside ? running.get(0).run(() -> act(step)) : act(step));
  }

  private int act(AsyncTrace.Step step) {
    switch (step.event) {
      case "on_schema":
      case "on_schema_refused":
        return giveSchema(step);
      case "on_task":
      case "on_task_refused":
      case "overlap":
        return giveTask(step);
      case "on_end":
        return AsyncForeign.onNextTask(handler, 0, 0);
      case "take":
        return take(step.task);
      case "extract_ok":
      case "extract_fails":
        return finishExtraction(step, step.errno, step.errno);
      case "extract_invalid":
        return finishExtraction(step, FletchingException.EINVAL, 0);
      case "release":
      case "release_inside":
        return release(step);
      case "on_error":
      case "on_error_foreign_code":
        AsyncForeign.callOnError(handler, step.errno, null);
        return 0;
      case "request":
        core.request(step.n);
        return 0;
      case "cancel":
        synchronized (told) {
          cancelled = true;
        }
        core.cancel(new FletchingException(125, "cancelled"));
        return 0;
      case "drop":
        if (!core.skip()) {
          fail("nothing to drop");
        }
        return 0;
      default:
        fail("no such event");
        return 0;
    }
  }

  private void setRefusal(AsyncTrace.Step step) {
    if (step.event.endsWith("_refused")) {
      refusal = new FletchingException(step.errno, "refused by the application");
    }
  }

  private int giveSchema(AsyncTrace.Step step) {
    Thing given = new Thing(0);
    boolean first = known == null;
    known = first ? given : known;
    Slot schema = Slot.take(Kind.SCHEMA);
    AsyncForeign.fill(Kind.SCHEMA, schema.address, () -> given.meets("freed"));
    setRefusal(step);
    int code = AsyncForeign.callOnSchema(handler, schema.address);
    boolean left = !Kind.SCHEMA.isReleased(schema.address);
    if ((code != 0) != left) {
      fail("the schema was neither taken nor refused");
    }
    if (left) {
      refused |= first;
      Kind.SCHEMA.releaseOnce(schema.address);
    }
    schema.free();
    return code;
  }

  private int giveTask(AsyncTrace.Step step) {
    GivenTask task = new GivenTask(step.task);
    synchronized (told) {
      tasks.add(task);
      arriving = task;
    }
    setRefusal(step);
    int code = AsyncForeign.callOnNextTask(handler, task, null);
    synchronized (told) {
      arriving = null;
    }
    if (code != 0) {
      task.meets("refused");
    }
    return code;
  }

  private int take(int task) {
    AsyncExtraction extraction = new AsyncExtraction(task);
    synchronized (told) {
      running.add(extraction);
    }
    Thread thread =
        new Thread(
            () -> {
              AsyncConsumer.Received received = core.take(0);
              if (received.error == null) {
                received.batch.close();
              }
              AsyncExtraction.put(
                  extraction.answers, received.error == null ? 0 : received.error.errno());
            });
    thread.setDaemon(true);
    thread.start();
    return AsyncExtraction.taken(extraction.answers);
  }

  /** Lets extract_data return a code; the other one is that of take. */
  private int finishExtraction(AsyncTrace.Step step, int code, int returned) {
    AsyncExtraction extraction;
    GivenTask task;
    synchronized (told) {
      extraction = running.stream().filter(e -> e.task == step.task).findFirst().orElseThrow();
      running.remove(extraction);
      task = tasks.get(step.task);
    }
    task.meets(code == 0 ? "extracted" : "failed");
    task.isWrong = code != returned;
    AsyncExtraction.put(extraction.orders, () -> returned);
    int answer = AsyncExtraction.taken(extraction.answers);
    if (answer != code) {
      fail("take: expected " + code + ", got " + answer);
    }
    if (step.thenReturns != null) {
      join();
    }
    return 0;
  }

  private void join() {
    for (Thread release : releases) {
      try {
        release.join();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
    releases.clear();
  }

  /** Returns when it is done, or waits. */
  private int release(AsyncTrace.Step step) {
    if (step.returns == null) {
      AsyncForeign.callRelease(handler);
      return 0;
    }
    int before = inside.get();
    Thread thread = new Thread(() -> AsyncForeign.callRelease(handler));
    thread.setDaemon(true);
    releases.add(thread);
    thread.start();
    // The steps within its notification are played before the next one.
    while (core.state != AsyncConsumer.State.RELEASING || expectsMore() || inside.get() > before) {
      if (!thread.isAlive()) {
        fail("release does not wait");
        return 0;
      }
      Thread.onSpinWait();
    }
    return 0;
  }

  private void wake() {
    String what = news();
    if (what != null) {
      reached(what, "notify");
    }
  }

  private String news() {
    AsyncConsumer.State state = core.state;
    RuntimeException outcome = core.outcome();
    synchronized (told) {
      GivenTask task = arriving;
      arriving = null;
      if (cancelled || state == AsyncConsumer.State.BROKEN) { // the application knows
        knowsError = true;
      } else if (outcome != null && outcome != AsyncConsumer.END && !knowsError) {
        knowsError = true;
        codes.add(((FletchingException) outcome).errno());
        return "notify error " + codes.get(0);
      } else if (state == AsyncConsumer.State.ENDED && !knowsEnd) {
        knowsEnd = true;
        return "notify end";
      } else if (core.promise != null && !knowsSchema) {
        knowsSchema = true;
        return "notify schema";
      } else if (task != null && state == AsyncConsumer.State.STREAMING) {
        return "notify task " + task.number;
      }
      return null;
    }
  }

  /** Plays the steps within this call, when it is the last of its name. */
  private void reached(String what, String name) {
    inside.incrementAndGet();
    happened(what);
    boolean more = expectsAnother(name);
    for (AsyncTrace.Step step = next();
        !more && step != null && name.equals(step.within);
        step = next()) {
      one(step);
    }
    inside.decrementAndGet();
  }

  private int extract(GivenTask task, long self, long out) {
    boolean wanted = out != 0;
    String what = "extract_data " + task.number + (wanted ? "" : " drop");
    AsyncExtraction extraction;
    synchronized (told) {
      extraction =
          running.stream().filter(e -> e.task == task.number && !e.inside).findFirst().orElse(null);
      if (extraction != null) {
        extraction.inside = true;
      }
    }
    int code = 0;
    if (extraction == null) {
      task.meets(wanted ? "extracted" : "dropped");
      reached(what, "extract_data");
    } else {
      happened(what);
      AsyncExtraction.put(extraction.answers, 0);
      Integer returned = null;
      while (returned == null) {
        returned = AsyncExtraction.taken(extraction.orders).get();
      }
      code = returned;
    }
    AsyncForeign.forgetTask(self);
    if (wanted && code == 0) {
      AsyncForeign.fill(Kind.DEVICE_ARRAY, out, task::released);
      task.arrays++;
      if (task.isWrong) {
        C.putInt(out + DeviceArray.DEVICE_TYPE, DeviceType.CUDA.value());
      }
    } else if (wanted) { // written all the same: the consumer must not look at it
      C.putAddress(out + Kind.DEVICE_ARRAY.release, 1);
    }
    return code;
  }

  @Override
  public void request(long n) {
    reached("request " + n, "request");
  }

  @Override
  public void cancel() {
    reached("cancel", "cancel");
  }

  private String finish() {
    for (AsyncExtraction extraction : running) {
      fail("a task is still being extracted");
      AsyncExtraction.put(extraction.orders, () -> 5);
      AsyncExtraction.taken(extraction.answers);
    }
    join();
    for (AsyncConsumer.Received rest = core.take(0); rest != null; rest = core.take(0)) {
      if (rest.error == null) {
        rest.batch.close();
      }
    }
    checkOutcome();
    List<String> fates =
        tasks.stream()
            .peek(task -> checkReleased(task))
            .map(task -> task.fate("freed"))
            .collect(Collectors.toList());
    String schema = "none";
    if (refused) {
      schema = "refused";
    } else if (known != null) {
      schema = known.hasMetNothing() ? "taken" : known.fate("discarded");
    }
    core.close();
    AsyncForeign.freeProducer(object);
    return compare(schema, fates, codes);
  }

  private void checkReleased(GivenTask task) {
    if (task.arrays != task.released) {
      fail("an array was not released, or twice");
    }
  }

  /** The stream has ended as the application was notified. */
  private void checkOutcome() {
    RuntimeException outcome = core.outcome();
    boolean failed = outcome instanceof FletchingException && outcome != AsyncConsumer.END;
    if (hasFailed() || cancelled || (failed && codes.isEmpty())) {
      return;
    }
    if (codes.isEmpty() ? failed || outcome == null : !failed) {
      fail("expected " + codes + ", got " + outcome);
    } else if (failed && ((FletchingException) outcome).errno() != codes.get(0)) {
      fail("expected the error " + codes + ", got " + outcome);
    }
  }
}
