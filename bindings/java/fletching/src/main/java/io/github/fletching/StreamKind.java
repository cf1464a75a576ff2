// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.engine.Handles;

/** What differs between the two kinds of streams: where the callbacks are, and our own ones. */
enum StreamKind {
  HOST(Kind.ARRAY_STREAM, Kind.ARRAY, "stream.callbacks-set"),
  DEVICE(Kind.DEVICE_ARRAY_STREAM, Kind.DEVICE_ARRAY, "device-stream.callbacks-set");

  final Kind kind;
  final Kind batch;
  final String rule;
  final long getSchema;
  final long getNext;
  final long getLastError;

  StreamKind(Kind kind, Kind batch, String rule) {
    this.kind = kind;
    this.batch = batch;
    this.rule = rule;
    getSchema = kind.offset("get_schema");
    getNext = kind.offset("get_next");
    getLastError = kind.offset("get_last_error");
  }

  /**
   * Calls one of the two callbacks that fill a struct. Of a call that failed nothing is the
   * caller's to release.
   */
  Slot pull(long stream, String name, long offset, Kind kind) {
    long function = C.getAddress(stream + offset);
    if (function == 0) {
      throw FletchingException.brokenRule(
          rule,
          this.kind.cName() + "." + name + ": NULL: expected a callback; hint: fix the producer");
    }
    Slot out = Slot.take(kind);
    int code = (int) C.call("iaa", function, stream, out.address);
    if (code == 0) {
      return out;
    }
    out.free();
    long lastError = C.getAddress(stream + getLastError);
    long text = lastError == 0 ? 0 : C.call("aa", lastError, stream);
    throw FletchingException.foreign(code, Native.printable(text));
  }

  /** Fills a zeroed struct with a stream of ours. */
  void export(long stream, StreamProducer<?> producer) {
    Stubs stubs = this == HOST ? HostStubs.STUBS : DeviceStubs.STUBS;
    C.putAddress(stream + getSchema, stubs.getSchema);
    C.putAddress(stream + getNext, stubs.getNext);
    C.putAddress(stream + getLastError, stubs.getLastError);
    producer.adopt(kind, stream);
  }

  // Made when the first stream is exported.

  private static final class HostStubs {
    static final Stubs STUBS = new Stubs(HOST);
  }

  private static final class DeviceStubs {
    static final Stubs STUBS = new Stubs(DEVICE);
  }

  private static final class Stubs {
    final long getSchema;
    final long getNext;
    final long getLastError;

    Stubs(StreamKind streams) {
      Kind kind = streams.kind;
      String name = kind.cName();
      getSchema =
          C.stub(
              name + ".get_schema",
              "iaa",
              FletchingException.EIO,
              (stream, out, c, d) -> producer(kind, stream).getSchema(out));
      getNext =
          C.stub(
              name + ".get_next",
              "iaa",
              FletchingException.EIO,
              (stream, out, c, d) -> producer(kind, stream).getNext(out));
      getLastError =
          C.stub(
              name + ".get_last_error",
              "aa",
              0,
              (stream, b, c, d) -> producer(kind, stream).getLastError());
    }

    private static StreamProducer<?> producer(Kind kind, long stream) {
      return Handles.find(StreamProducer.class, C.getAddress(stream + kind.privateData));
    }
  }
}
