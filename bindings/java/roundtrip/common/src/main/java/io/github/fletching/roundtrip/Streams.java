// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Streams handed on as our own. One stream is used by one thread at a time. */
final class Streams {
  /** Sees every batch that passes through; what it throws fails that get_next. */
  interface Observer {
    void see(long schema, long array);
  }

  private final Structs structs;
  private final Structs.Stream access;
  private final Transit transit;
  private final Map<Long, State> alive = new ConcurrentHashMap<>();
  private final long getSchema;
  private final long getNext;
  private final long getLastError;
  private final long release;

  Streams(Structs structs, Transit transit) {
    this.structs = structs;
    this.access = structs.stream;
    this.transit = transit;
    getSchema = access.newGetSchema.applyAsLong(this::getSchema);
    getNext = access.newGetNext.applyAsLong(this::getNext);
    getLastError = access.newGetLastError.applyAsLong(this::getLastError);
    release = access.newRelease.applyAsLong(this::release);
  }

  /** What stands behind one stream of ours. */
  private static final class State {
    long source; // moved in
    long schema; // read once, for the checks of the batches
    Observer observer;
    long lastError; // a text of C's, or 0
  }

  /** Moves {@code source} in and fills {@code out}; when it throws, both are as before. */
  void reexport(long source, long out, Observer observer) {
    new Walk(structs).checkStream(source);
    State state = new State();
    state.observer = observer;
    try {
      state.schema = structs.allocate(structs.schema.size);
      pullSchema(source, state.schema);
      state.source = structs.allocate(access.size);
    } catch (Throwable e) {
      free(state);
      throw e;
    }
    Foreign.copy(source, state.source, access.size);
    Foreign.copy(source, out, access.size);
    access.release.set(source, 0);
    long key = transit.counts().exported.incrementAndGet();
    alive.put(key, state);
    access.privateData.set(out, key);
    access.getSchema.set(out, getSchema);
    access.getNext.set(out, getNext);
    access.getLastError.set(out, getLastError);
    access.release.set(out, release);
  }

  private void pullSchema(long stream, long schema) {
    int code = access.callGetSchema.fill(stream, schema);
    if (code != 0) {
      structs.schema.release.set(schema, 0); // what a failed call left there is nobody's
      throw failure(stream, "get_schema", code);
    }
    new Walk(structs).checkSchema(schema);
  }

  private TransitException failure(long stream, String callback, int code) {
    long text = access.callGetLastError.of(stream);
    if (text == 0) {
      return new TransitException(code, callback + " failed with errno " + code + " and no text");
    }
    return new TransitException(code, Foreign.textBytes(text));
  }

  private int getSchema(long self, long out) {
    return answer(
        self,
        state -> {
          requireOut(out);
          long schema = structs.allocate(structs.schema.size);
          try {
            pullSchema(state.source, schema);
            transit.moveSchema(schema, out);
          } finally {
            transit.schemas().releaseAt(schema);
            structs.free(schema);
          }
        });
  }

  private int getNext(long self, long out) {
    return answer(
        self,
        state -> {
          requireOut(out);
          long batch = structs.allocate(structs.deviceArraySize);
          try {
            passBatch(state, batch, out);
          } finally {
            transit.arrays().releaseAt(structs.arrayOf(batch));
            structs.free(batch);
          }
        });
  }

  private void passBatch(State state, long batch, long out) {
    long array = structs.arrayOf(batch);
    int code = access.callGetNext.fill(state.source, batch);
    if (code != 0) {
      structs.array.release.set(array, 0); // what a failed call left there is nobody's
      throw failure(state.source, "get_next", code);
    }
    if (structs.array.release.of(array) == 0) {
      Foreign.copy(batch, out, structs.deviceArraySize); // the end
      return;
    }
    new Walk(structs).checkArray(state.schema, array);
    state.observer.see(state.schema, batch);
    transit.moveDeviceArray(batch, out);
  }

  private static void requireOut(long out) {
    if (out == 0) {
      throw new TransitException(TransitException.EINVAL, "out is NULL");
    }
  }

  private interface Work {
    void run(State state);
  }

  /** Runs the work of one callback, and keeps the text when it fails. */
  private int answer(long self, Work work) {
    Guard.Outcome outcome =
        Guard.run(
            () -> {
              State state = state(self);
              setLastError(state, null);
              work.run(state);
            });
    if (outcome.errno != 0) {
      Guard.Outcome kept = Guard.run(() -> setLastError(state(self), outcome.text));
      if (kept.errno != 0) {
        Guard.log("a callback of a stream", new IllegalStateException(outcome.message()));
      }
    }
    return outcome.errno;
  }

  private State state(long self) {
    State state = self == 0 ? null : alive.get(access.privateData.of(self));
    if (state == null) {
      throw new TransitException(TransitException.EINVAL, "the stream is released");
    }
    return state;
  }

  private void setLastError(State state, byte[] text) {
    structs.free(state.lastError);
    state.lastError = 0;
    if (text != null) {
      state.lastError = structs.allocate(text.length + 1L);
      Foreign.write(state.lastError, text); // the memory is zeroed: a NUL follows
    }
  }

  private long getLastError(long self) {
    try {
      return state(self).lastError;
    } catch (Throwable e) {
      Guard.log("get_last_error", e);
      return 0;
    }
  }

  private void release(long self) {
    try {
      State state = self == 0 ? null : alive.remove(access.privateData.of(self));
      if (state == null) {
        System.err.println("ArrowDeviceArrayStream: released twice, or not one of ours");
        return;
      }
      if (access.release.of(state.source) != 0) {
        access.callRelease.accept(state.source);
      }
      free(state);
      access.release.set(self, 0);
      transit.counts().released.incrementAndGet();
    } catch (Throwable e) {
      Guard.log("ArrowDeviceArrayStream.release", e);
    }
  }

  private void free(State state) {
    if (state.schema != 0) {
      transit.schemas().releaseAt(state.schema);
    }
    structs.free(state.schema);
    structs.free(state.source);
    structs.free(state.lastError);
  }
}
