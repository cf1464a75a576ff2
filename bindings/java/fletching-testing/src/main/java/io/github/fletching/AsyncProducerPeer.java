// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/** Producer that makes its calls one by one and records the consumer's calls. */
final class AsyncProducerPeer implements AsyncForeign.Producer, AutoCloseable {
  final AsyncDeviceStream stream;
  final long handler;
  final long object = AsyncForeign.producer(this);
  final AtomicReference<Runnable> inside = new AtomicReference<>(); // runs inside the next call
  private final List<String> calls = new ArrayList<>();

  AsyncProducerPeer(AsyncDeviceStream stream) {
    this(stream, stream.handlerAddress());
  }

  AsyncProducerPeer(AsyncDeviceStream stream, long handler) {
    this.stream = stream;
    this.handler = handler;
    C.putAddress(handler + Fields.HANDLER_PRODUCER, object);
  }

  private void called(String call) {
    Runnable then = inside.getAndSet(null);
    if (then != null) {
      then.run();
    }
    add(call);
  }

  private synchronized void add(String call) {
    calls.add(call);
  }

  /** Returns the calls since the previous {@code calls()}. */
  synchronized String calls() {
    String all = String.join(", ", calls);
    calls.clear();
    return all;
  }

  @Override
  public void request(long n) {
    called("request " + n);
  }

  @Override
  public void cancel() {
    called("cancel");
  }

  int schema() {
    return schema(AsyncRows.schema());
  }

  /** Sends a schema and releases its struct after the call. */
  int schema(Schema schema) {
    Slot raw = Slot.take(Kind.SCHEMA);
    schema.moveTo(raw.address);
    int code = AsyncForeign.callOnSchema(handler, raw.address);
    if ((code == 0) != Kind.SCHEMA.isReleased(raw.address)) {
      add("schema neither taken nor refused");
    }
    Kind.SCHEMA.releaseOnce(raw.address);
    raw.free();
    return code;
  }

  /** Sends a task with {@code rows} rows, which is also the task's number. */
  int task(int rows) {
    return task(rows, AsyncRows.rowsOf(rows), 0);
  }

  int task(int number, DeviceArray batch, int code) {
    return task(number, batch, code, null);
  }

  int task(int number, DeviceArray batch, int code, byte[] metadata) {
    int result =
        AsyncForeign.callOnNextTask(
            handler, (self, out) -> extract(number, batch, code, self, out), metadata);
    if (result != 0) {
      batch.close();
    }
    return result;
  }

  private int extract(int number, DeviceArray batch, int code, long self, long out) {
    AsyncForeign.forgetTask(self);
    called((out == 0 ? "drop " : "extract ") + number);
    if (out != 0 && code != 0) { // set even though the call fails: the consumer must not read it
      C.putAddress(out + Kind.DEVICE_ARRAY.release, 1);
    } else if (out != 0 && !batch.isReleased()) {
      batch.moveTo(out);
    }
    batch.close();
    return code;
  }

  int end() {
    return AsyncForeign.onNextTask(handler, 0, 0);
  }

  void fail(int code, String text) {
    AsyncForeign.callOnError(handler, code, text);
  }

  void release() {
    AsyncForeign.callRelease(handler);
  }

  @Override
  public void close() {
    if (stream != null) {
      stream.close();
    }
    AsyncForeign.freeProducer(object);
  }
}
