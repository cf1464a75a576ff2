// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.Offsets;
import io.github.fletching.abi.engine.Handles;
import java.util.concurrent.ConcurrentLinkedQueue;

/** C structs of an async stream, and the checks shared by producer and consumer. */
final class AsyncAbi {
  /** Offset of the task in a producer's block. */
  static final int TASK = Offsets.ARROW_ASYNC_PRODUCER.size(C.target());

  private static final byte[] ZEROS = new byte[64]; // a handler, or a producer and a task
  private static final ConcurrentLinkedQueue<Long> FREE = new ConcurrentLinkedQueue<>();

  private AsyncAbi() {}

  /** Returns a zeroed C block, possibly a recycled one. Throws ENOMEM. */
  static long takeBlock() {
    Long block = FREE.poll();
    return block != null ? block : Native.allocate(ZEROS.length, "async stream");
  }

  /** Recycles a block. Never throws. */
  static void putBlock(long block) {
    C.write(block, ZEROS);
    try {
      FREE.add(block);
    } catch (OutOfMemoryError noMemory) {
      C.free(block);
    }
  }

  /** Frees all recycled blocks. */
  static void freeBlocks() {
    for (Long block = FREE.poll(); block != null; block = FREE.poll()) {
      C.free(block);
    }
  }

  /** Allocates a C block with the given bytes; the caller frees it. Throws ENOMEM. */
  static long newBlock(byte[] bytes) {
    long block = Native.allocate(bytes.length, "async stream");
    C.write(block, bytes);
    return block;
  }

  static long saturated(long sum, long n) {
    return sum + Math.min(n, Long.MAX_VALUE - sum);
  }

  /** The properties shared by all batches of a stream, as far as they are cheap to compare. */
  static final class Promise {
    final DeviceType deviceType;
    final Metadata metadata; // metadata of the stream
    private final Shape shape;

    Promise(DeviceType deviceType, Metadata metadata, Shape shape) {
      this.deviceType = deviceType;
      this.metadata = metadata;
      this.shape = shape;
    }

    /** Throws EINVAL if the batch does not match; the message omits a negative batch number. */
    void check(DeviceArray batch, long number) {
      String title = number < 0 ? "batch: " : "batch " + number + ": ";
      if (batch.isReleased()) {
        throw FletchingException.invalid(title + "released: expected a live array");
      }
      if (!batch.deviceType().equals(deviceType)) {
        throw FletchingException.brokenRule(
            "async-producer.one-device-type",
            title
                + "device_type differs from the stream's: expected "
                + deviceType
                + ", got "
                + batch.deviceType());
      }
      String difference = shape.difference(batch);
      if (difference != null) {
        throw FletchingException.brokenRule("async-next.same-schema", title + difference);
      }
    }
  }

  // --- Callbacks of this library's structs

  static void installHandler(long handler, AsyncHandler consumer) {
    Callback.HANDLER_ON_SCHEMA.install(
        handler, (self, schema, c, d) -> consumer(self).onSchema(self, schema));
    Callback.HANDLER_ON_NEXT_TASK.install(
        handler, (self, task, metadata, d) -> consumer(self).onNextTask(task, metadata));
    Callback.HANDLER_ON_ERROR.install(
        handler, (self, code, message, d) -> consumer(self).onError((int) code, message));
    Callback.HANDLER_RELEASE.install(handler, (self, b, c, d) -> consumer(self).onRelease());
    C.putAddress(handler + Fields.HANDLER_PRIVATE_DATA, Handles.add(consumer));
  }

  private static AsyncHandler consumer(long self) {
    return Handles.find(AsyncHandler.class, C.getAddress(self + Fields.HANDLER_PRIVATE_DATA));
  }

  static void installProducer(long producer, AsyncSending<?> sending) {
    Callback.PRODUCER_REQUEST.install(producer, (self, n, c, d) -> sending(self).onRequest(n));
    Callback.PRODUCER_CANCEL.install(producer, (self, b, c, d) -> sending(self).onCancel());
    C.putAddress(producer + Fields.PRODUCER_PRIVATE_DATA, Handles.add(sending));
  }

  private static AsyncSending<?> sending(long self) {
    return Handles.find(AsyncSending.class, C.getAddress(self + Fields.PRODUCER_PRIVATE_DATA));
  }

  /** Installs extract_data. The handle refers to an {@link AsyncTask}. */
  static void installTask(long task, long handle) {
    Callback.TASK_EXTRACT_DATA.install(task, (self, out, c, d) -> AsyncTask.extract(self, out));
    C.putAddress(task + Fields.TASK_PRIVATE_DATA, handle);
  }
}
