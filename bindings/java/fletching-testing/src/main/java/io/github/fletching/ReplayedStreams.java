// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.abi.Errno.ECANCELED;
import static io.github.fletching.abi.Errno.ENOENT;

import com.sun.jna.Function;
import com.sun.jna.Pointer;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.suite.Conformance;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Both sides of the async stream, on which the conformance suite replays the traces. */
public final class ReplayedStreams {
  // JNA's callbacks must live until C releases the table.
  private static final Set<Object> TABLES = ConcurrentHashMap.newKeySet();

  private ReplayedStreams() {}

  /** Creates a producer of CPU batches for the handler. */
  public static void produce(long handler, Pointer out) {
    new Producer(handler).fill(new Conformance.Producer(out));
  }

  /** Creates a consumer that reports its application's events to {@code notify}. */
  public static void consume(Pointer notify, Pointer context, Pointer out) {
    new Consumer(Function.getFunction(notify), context).fill(new Conformance.Consumer(out));
  }

  private static final class Producer {
    private final List<Runnable> jobs = new ArrayList<>(); // a dropped job would fail the stream
    private final List<DeviceArray> failing = new ArrayList<>();
    private final AsyncSending<AsyncBatch> sending;
    private boolean isRunning;
    private boolean isReleased;

    Producer(long handler) {
      sending =
          new AsyncSending<>(handler, DeviceType.CPU, Metadata.EMPTY, jobs::add, batch -> batch);
    }

    void fill(Conformance.Producer table) {
      table.schema = (self, schema) -> sending.open(Schema.wrap(schema));
      table.batch = (self, batch) -> sending.onNext(AsyncBatch.of(DeviceArray.wrap(batch)));
      table.failingBatch = (self, batch, code) -> fail(DeviceArray.wrap(batch), code);
      table.end = self -> sending.onComplete();
      table.fail =
          (self, code) -> sending.onError(new FletchingException(code, "the source has failed"));
      table.run = self -> run() ? 1 : 0;
      table.release =
          self -> {
            failing.forEach(DeviceArray::close); // never extracted
            sending.free();
            TABLES.remove(table);
          };
      table.write();
      TABLES.add(table);
    }

    private void fail(DeviceArray batch, int code) {
      failing.add(batch);
      sending.onNext(
          AsyncBatch.made(
              () -> {
                batch.close();
                throw new FletchingException(code, "the data is lost");
              }));
    }

    private boolean run() {
      if (isRunning || isReleased) {
        return false;
      }
      isRunning = true;
      AsyncSending.Due due = sending.step();
      isRunning = false;
      isReleased = due == AsyncSending.Due.RELEASE;
      return due != AsyncSending.Due.NOTHING;
    }
  }

  private static final class Consumer {
    private final AsyncHandler core = new AsyncHandler();
    private final Function notify;
    private final Pointer context;
    private int refusal; // an errno value; 0 for none

    // Guarded by this.
    private boolean isTaskNew;
    private boolean knowsSchema;
    private boolean knowsEnd;

    Consumer(Function notify, Pointer context) {
      this.notify = notify;
      this.context = context;
      core.schemaCheck = schema -> answer();
      core.taskCheck =
          metadata -> {
            answer();
            setTaskNew(true);
          };
      core.news = this::wake;
    }

    void fill(Conformance.Consumer table) {
      table.handler = core.expose();
      table.request = (self, n) -> core.request(n);
      table.take = self -> take();
      table.drop = self -> AsyncConsumerTest.skip(core) ? 0 : ENOENT;
      table.cancel = self -> cancel();
      table.refuseNext = (self, code) -> refusal = code;
      table.state = self -> core.state.ordinal();
      table.release =
          self -> {
            while (AsyncConsumerTest.skip(core)) {}
            core.close();
            TABLES.remove(table);
          };
      table.write();
      TABLES.add(table);
    }

    private void answer() {
      int code = refusal;
      refusal = 0;
      if (code != 0) {
        throw new FletchingException(code, "the application does not take it");
      }
    }

    private int take() {
      AsyncConsumer.Received received = core.take(0);
      if (received == null) {
        return ENOENT;
      }
      received.close();
      return received.error == null ? 0 : received.error.errno();
    }

    private void cancel() {
      knowEnd(); // the application's cancel
      core.cancel(new FletchingException(ECANCELED, "cancelled"));
    }

    private synchronized void setTaskNew(boolean isNew) {
      isTaskNew = isNew;
    }

    private synchronized void knowEnd() {
      knowsEnd = true;
    }

    private void wake() {
      AsyncConsumer.State state = core.state;
      RuntimeException outcome = core.outcome();
      boolean hasSchema = core.promise != null;
      FletchingException error =
          outcome == null || outcome == AsyncConsumer.END ? null : (FletchingException) outcome;
      String what = news(state, error, hasSchema);
      if (what != null) {
        int code = what.equals("error") ? error.errno() : 0;
        notify.invokeVoid(new Object[] {context, what, code});
      }
    }

    /** Returns the application's next notification, or null. */
    private synchronized String news(
        AsyncConsumer.State state, FletchingException error, boolean hasSchema) {
      boolean hasTask = isTaskNew;
      isTaskNew = false;
      if (state == AsyncConsumer.State.BROKEN) {
        knowsEnd = true; // take returned the error
      }
      if (!knowsEnd && (error != null || state == AsyncConsumer.State.ENDED)) {
        knowsEnd = true;
        return error != null ? "error" : "end";
      }
      if (hasSchema && !knowsSchema) {
        knowsSchema = true;
        return "schema";
      }
      return hasTask && state == AsyncConsumer.State.STREAMING ? "task" : null;
    }
  }
}
