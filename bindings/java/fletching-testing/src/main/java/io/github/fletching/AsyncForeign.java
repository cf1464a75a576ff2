// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.engine.Handles;

/** The foreign side of an async stream in tests: C structs whose callbacks are Java objects. */
final class AsyncForeign {
  private static final long NULL_TYPE = Native.newText("n"); // shared by all schemas, never freed

  private AsyncForeign() {}

  /** The callbacks of an ArrowAsyncProducer. */
  interface Producer {
    void request(long n);

    void cancel();
  }

  /** The callbacks of an ArrowAsyncTask. */
  interface Task {
    int extractData(long self, long out);
  }

  /** The callbacks of an ArrowAsyncDeviceStreamHandler. */
  interface Handler {
    int onSchema(long schema);

    int onNextTask(long task, long metadata);

    void onError(int code, String message, long metadata);

    void release();
  }

  /** The release callback of a schema or an array. */
  interface Release {
    void released();
  }

  private static final long REQUEST =
      stub("request", "val", (self, n, c, d) -> producer(self).request(n));
  private static final long CANCEL =
      stub("cancel", "va", (self, b, c, d) -> producer(self).cancel());
  private static final long EXTRACT =
      C.stub(
          "extract",
          "iaa",
          5,
          (self, out, c, d) ->
              Handles.find(Task.class, C.getAddress(self + Fields.TASK_PRIVATE_DATA))
                  .extractData(self, out));
  private static final long ON_SCHEMA =
      C.stub("on_schema", "iaa", 5, (self, schema, c, d) -> handler(self).onSchema(schema));
  private static final long ON_NEXT_TASK =
      C.stub(
          "on_next_task", "iaaa", 5, (self, task, meta, d) -> handler(self).onNextTask(task, meta));
  private static final long ON_ERROR =
      stub(
          "on_error",
          "vaiaa",
          (self, code, message, metadata) -> {
            String text = message == 0 ? null : Native.text(message);
            handler(self).onError((int) code, text, metadata);
          });
  private static final long RELEASE =
      stub("release", "va", (self, b, c, d) -> handler(self).release());

  private interface Action {
    void run(long self, long second, long third, long fourth);
  }

  /** A callback without a result. */
  private static long stub(String name, String signature, Action action) {
    return C.stub(
        name,
        signature,
        0,
        (self, b, c, d) -> {
          action.run(self, b, c, d);
          return 0;
        });
  }

  private static Producer producer(long self) {
    return Handles.find(Producer.class, C.getAddress(self + Fields.PRODUCER_PRIVATE_DATA));
  }

  private static Handler handler(long self) {
    return Handles.find(Handler.class, C.getAddress(self + Fields.HANDLER_PRIVATE_DATA));
  }

  /** Returns a struct that {@link #freeProducer} frees. */
  static long producer(Producer callbacks) {
    long struct = AsyncAbi.takeBlock();
    C.putInt(struct + Fields.PRODUCER_DEVICE_TYPE, DeviceType.CPU.value());
    C.putAddress(struct + Fields.PRODUCER_REQUEST, REQUEST);
    C.putAddress(struct + Fields.PRODUCER_CANCEL, CANCEL);
    C.putAddress(struct + Fields.PRODUCER_PRIVATE_DATA, Handles.add(callbacks));
    return struct;
  }

  static long handler(Handler callbacks) {
    long struct = AsyncAbi.takeBlock();
    C.putAddress(struct + Fields.HANDLER_ON_SCHEMA, ON_SCHEMA);
    C.putAddress(struct + Fields.HANDLER_ON_NEXT_TASK, ON_NEXT_TASK);
    C.putAddress(struct + Fields.HANDLER_ON_ERROR, ON_ERROR);
    C.putAddress(struct + Fields.HANDLER_RELEASE, RELEASE);
    C.putAddress(struct + Fields.HANDLER_PRIVATE_DATA, Handles.add(callbacks));
    return struct;
  }

  static void freeProducer(long struct) {
    free(struct, Fields.PRODUCER_PRIVATE_DATA);
  }

  static void freeHandler(long struct) {
    free(struct, Fields.HANDLER_PRIVATE_DATA);
  }

  private static void free(long struct, long privateData) {
    Handles.remove(C.getAddress(struct + privateData));
    AsyncAbi.putBlock(struct);
  }

  // --- Calls that a producer makes

  static int callOnSchema(long handler, long schema) {
    return (int) C.call("iaa", C.getAddress(handler + Fields.HANDLER_ON_SCHEMA), handler, schema);
  }

  /**
   * Calls on_next_task with a task whose struct and metadata are overwritten after the call.
   * Removes the handle of a rejected task.
   */
  static int callOnNextTask(long handler, Task callbacks, byte[] metadata) {
    long struct = AsyncAbi.takeBlock();
    long handle = Handles.add(callbacks);
    C.putAddress(struct + Fields.TASK_EXTRACT_DATA, EXTRACT);
    C.putAddress(struct + Fields.TASK_PRIVATE_DATA, handle);
    long block = metadata == null ? 0 : AsyncAbi.newBlock(metadata);
    int code = onNextTask(handler, struct, block);
    if (block != 0) {
      C.write(block, new byte[metadata.length]);
      C.free(block);
    }
    C.putAddress(struct + Fields.TASK_EXTRACT_DATA, 1);
    AsyncAbi.putBlock(struct);
    if (code != 0) {
      Handles.remove(handle);
    }
    return code;
  }

  /** Removes the object of a task, in the last call to that task. */
  static void forgetTask(long self) {
    Handles.remove(C.getAddress(self + Fields.TASK_PRIVATE_DATA));
  }

  static int onNextTask(long handler, long task, long metadata) {
    long function = C.getAddress(handler + Fields.HANDLER_ON_NEXT_TASK);
    return (int) C.call("iaaa", function, handler, task, metadata);
  }

  static void callOnError(long handler, int code, String message) {
    long text = message == null ? 0 : Native.newText(message);
    C.call("vaiaa", C.getAddress(handler + Fields.HANDLER_ON_ERROR), handler, code, text, 0);
    C.free(text);
  }

  static void callRelease(long handler) {
    C.run(C.getAddress(handler + Fields.HANDLER_RELEASE), handler);
  }

  // --- Calls that a consumer makes

  static void callRequest(long producer, long n) {
    C.call("val", C.getAddress(producer + Fields.PRODUCER_REQUEST), producer, n);
  }

  static void callCancel(long producer) {
    C.call("va", C.getAddress(producer + Fields.PRODUCER_CANCEL), producer);
  }

  /** Copies a task, because the struct is valid only during the call. */
  static long copyTask(long task) {
    long copy = AsyncAbi.takeBlock();
    C.putAddress(copy + Fields.TASK_EXTRACT_DATA, C.getAddress(task + Fields.TASK_EXTRACT_DATA));
    C.putAddress(copy + Fields.TASK_PRIVATE_DATA, C.getAddress(task + Fields.TASK_PRIVATE_DATA));
    return copy;
  }

  static int callExtract(long task, long out) {
    return (int) C.call("iaa", C.getAddress(task + Fields.TASK_EXTRACT_DATA), task, out);
  }

  // --- Schemas and arrays that report their release

  static final class Reporting extends Exported {
    private final Release release;

    private Reporting(Release release) {
      this.release = release;
    }

    @Override
    void release(Kind kind, long struct, java.util.Deque<Object> ended) {
      kind.markReleased(struct);
      forget();
      release.released();
    }
  }

  /** Makes a zeroed struct a schema of the null type, or an empty array. */
  static void fill(Kind kind, long struct, Release release) {
    if (kind == Kind.DEVICE_ARRAY) {
      C.putInt(struct + Fields.DEVICE_ARRAY_DEVICE_TYPE, DeviceType.CPU.value());
    }
    if (kind == Kind.SCHEMA) {
      C.putAddress(struct + Fields.SCHEMA_FORMAT, NULL_TYPE);
    }
    new Reporting(release).adopt(kind, struct);
  }
}
