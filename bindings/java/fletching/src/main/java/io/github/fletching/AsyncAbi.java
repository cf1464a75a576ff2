// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.Offsets;
import io.github.fletching.abi.StructOffsets;
import io.github.fletching.abi.engine.Handles;
import java.util.concurrent.ConcurrentLinkedQueue;

/** The structs of an async stream in memory of C, and what both sides check. */
final class AsyncAbi {
  static final long ON_SCHEMA = handler("on_schema");
  static final long ON_NEXT_TASK = handler("on_next_task");
  static final long ON_ERROR = handler("on_error");
  static final long RELEASE = handler("release");
  static final long PRODUCER = handler("producer");
  static final long HANDLER_PRIVATE = handler("private_data");
  static final long DEVICE_TYPE = producer("device_type");
  static final long REQUEST = producer("request");
  static final long CANCEL = producer("cancel");
  static final long METADATA = producer("additional_metadata");
  static final long PRODUCER_PRIVATE = producer("private_data");
  static final long EXTRACT_DATA = task("extract_data");
  static final long TASK_PRIVATE = task("private_data");

  /** Where the task is in the block of a producer. */
  static final int TASK = Offsets.ARROW_ASYNC_PRODUCER.size(C.target());

  private static final byte[] ZEROS = new byte[64]; // a handler, or a producer and a task
  private static final ConcurrentLinkedQueue<Long> FREE = new ConcurrentLinkedQueue<>();

  private AsyncAbi() {}

  private static long handler(String field) {
    return offset(Offsets.ARROW_ASYNC_DEVICE_STREAM_HANDLER, field);
  }

  private static long producer(String field) {
    return offset(Offsets.ARROW_ASYNC_PRODUCER, field);
  }

  private static long task(String field) {
    return offset(Offsets.ARROW_ASYNC_TASK, field);
  }

  private static long offset(StructOffsets struct, String field) {
    return struct.offset(C.target(), field);
  }

  /** A zeroed block of C, which is used again and never freed. Errors: ENOMEM. */
  static long takeBlock() {
    Long block = FREE.poll();
    if (block == null) {
      block = C.allocate(ZEROS.length);
      if (block == 0) {
        throw FletchingException.noMemory("async stream");
      }
    }
    return block;
  }

  static void putBlock(long block) {
    C.write(block, ZEROS);
    FREE.add(block);
  }

  /** A block of C with these bytes, to be freed. Errors: ENOMEM. */
  static long newBlock(byte[] bytes) {
    long block = C.allocate(bytes.length);
    if (block == 0) {
      throw FletchingException.noMemory("async stream");
    }
    C.write(block, bytes);
    return block;
  }

  static long saturated(long sum, long n) {
    return n > Long.MAX_VALUE - sum ? Long.MAX_VALUE : sum + n;
  }

  /** What a stream promises of every batch, as far as it is cheap to compare. */
  static final class Promise {
    final DeviceType deviceType;
    final Metadata metadata; // of the stream
    private final int children;
    private final boolean hasDictionary;

    Promise(DeviceType deviceType, Metadata metadata, long schema) {
      this.deviceType = deviceType;
      this.metadata = metadata;
      children = Kind.SCHEMA.childCount(schema);
      hasDictionary = Kind.SCHEMA.dictionary(schema) != 0;
    }

    /** Errors: EINVAL. */
    void check(DeviceArray batch) {
      if (batch.isReleased()) {
        throw FletchingException.invalid("batch: released: expected a live array");
      }
      if (!batch.deviceType().equals(deviceType)) {
        throw FletchingException.brokenRule(
            "async-producer.one-device-type",
            "batch: device_type differs from the stream's: expected "
                + deviceType
                + ", got "
                + batch.deviceType());
      }
      long array = batch.address();
      if (C.getLong(array + Kind.ARRAY.childCount) != children
          || (Kind.ARRAY.dictionary(array) != 0) != hasDictionary) {
        throw FletchingException.brokenRule(
            "async-next.same-schema",
            "batch: children or dictionary differ from the stream's schema");
      }
    }
  }

  /** The callbacks of our own handlers, made when the first is exported. */
  static final class HandlerStubs {
    static final long ON_SCHEMA =
        C.stub(
            "ArrowAsyncDeviceStreamHandler.on_schema",
            "iaa",
            FletchingException.EIO,
            (self, schema, c, d) -> consumer(self).onSchema(self, schema));
    static final long ON_NEXT_TASK =
        C.stub(
            "ArrowAsyncDeviceStreamHandler.on_next_task",
            "iaaa",
            FletchingException.EIO,
            (self, task, metadata, d) -> consumer(self).onNextTask(task, metadata));
    static final long ON_ERROR =
        C.stub(
            "ArrowAsyncDeviceStreamHandler.on_error",
            "vaiaa",
            0,
            (self, code, message, metadata) -> consumer(self).onError((int) code, message));
    static final long RELEASE =
        C.stub(
            "ArrowAsyncDeviceStreamHandler.release",
            "va",
            0,
            (self, b, c, d) -> consumer(self).onRelease());

    private HandlerStubs() {}

    static void install(long handler, long handle) {
      C.putAddress(handler + AsyncAbi.ON_SCHEMA, ON_SCHEMA);
      C.putAddress(handler + AsyncAbi.ON_NEXT_TASK, ON_NEXT_TASK);
      C.putAddress(handler + AsyncAbi.ON_ERROR, ON_ERROR);
      C.putAddress(handler + AsyncAbi.RELEASE, RELEASE);
      C.putAddress(handler + HANDLER_PRIVATE, handle);
    }

    private static AsyncHandler consumer(long self) {
      return Handles.find(AsyncHandler.class, C.getAddress(self + HANDLER_PRIVATE));
    }
  }

  /** The callbacks of our own producers. */
  static final class ProducerStubs {
    static final long REQUEST =
        C.stub(
            "ArrowAsyncProducer.request", "val", 0, (self, n, c, d) -> producer(self).onRequest(n));
    static final long CANCEL =
        C.stub("ArrowAsyncProducer.cancel", "va", 0, (self, b, c, d) -> producer(self).onCancel());
    static final long EXTRACT_DATA =
        C.stub(
            "ArrowAsyncTask.extract_data",
            "iaa",
            FletchingException.EIO,
            (self, out, c, d) -> AsyncTask.extract(self, out));

    private ProducerStubs() {}

    static void install(long producer, long handle) {
      C.putAddress(producer + AsyncAbi.REQUEST, REQUEST);
      C.putAddress(producer + AsyncAbi.CANCEL, CANCEL);
      C.putAddress(producer + PRODUCER_PRIVATE, handle);
    }

    static void installTask(long task, long handle) {
      C.putAddress(task + AsyncAbi.EXTRACT_DATA, EXTRACT_DATA);
      C.putAddress(task + TASK_PRIVATE, handle);
    }

    private static AsyncSending<?> producer(long self) {
      return Handles.find(AsyncSending.class, C.getAddress(self + PRODUCER_PRIVATE));
    }
  }
}
