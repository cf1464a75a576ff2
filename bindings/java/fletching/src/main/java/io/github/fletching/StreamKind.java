// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.engine.Handles;

/** The differences between the two kinds of streams: callback locations and exported callbacks. */
enum StreamKind {
  HOST(Kind.ARRAY_STREAM, Kind.ARRAY, "stream.callbacks-set"),
  DEVICE(Kind.DEVICE_ARRAY_STREAM, Kind.DEVICE_ARRAY, "device-stream.callbacks-set");

  final Kind kind;
  final Kind batch;
  final Callback getSchema;
  final Callback getNext;
  private final Callback getLastError;
  private final String rule;

  StreamKind(Kind kind, Kind batch, String rule) {
    this.kind = kind;
    this.batch = batch;
    this.rule = rule;
    getSchema = Callback.valueOf(kind + "_GET_SCHEMA");
    getNext = Callback.valueOf(kind + "_GET_NEXT");
    getLastError = Callback.valueOf(kind + "_GET_LAST_ERROR");
  }

  /**
   * Calls one of the two callbacks that fill a struct. After an error there is no struct to
   * release.
   */
  Slot pull(long stream, Callback callback, Kind kind) {
    if (callback.in(stream) == 0) {
      throw FletchingException.brokenRule(
          rule, callback.title() + ": NULL: expected a callback; hint: fix the producer");
    }
    Slot out = Slot.take(kind);
    int code = (int) callback.call(stream, out.address);
    if (code == 0) {
      return out;
    }
    out.free();
    long text = getLastError.in(stream) == 0 ? 0 : getLastError.call(stream);
    throw FletchingException.foreign(code, Native.printable(text));
  }

  /** Fills a zeroed struct with an exported stream. */
  void export(long stream, StreamProducer<?> producer) {
    getSchema.install(
        stream,
        (self, out, c, d) -> out == 0 ? FletchingException.EINVAL : find(self).getSchema(out));
    getNext.install(
        stream,
        (self, out, c, d) -> out == 0 ? FletchingException.EINVAL : find(self).getNext(out));
    getLastError.install(stream, (self, b, c, d) -> find(self).getLastError());
    producer.adopt(kind, stream);
  }

  private StreamProducer<?> find(long stream) {
    return Handles.find(StreamProducer.class, C.getAddress(stream + kind.privateData));
  }
}
