// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.FletchingException;
import io.github.fletching.Schema;
import io.github.fletching.abi.Offsets;
import io.github.fletching.testing.NativeLibraries;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.util.function.ToIntFunction;

/** The reference producer; cpp/producer/producer.h defines every function. */
final class Producer {
  static final int MESSAGE_SIZE = 1024;

  private final Functions functions = NativeLibraries.load("producer", Functions.class);

  // The names are those of C, and JNA looks them up; addresses are a long.
  interface Functions extends Library {
    int FletchingProducerCaseCount();

    String FletchingProducerCaseName(int index);

    int FletchingProducerVerifyDump(byte[] dump, long[] lines, Pointer message);

    int FletchingProducerExportArray(
        String backend, String name, long schema, long array, Pointer message);

    int FletchingProducerExportStream(
        String backend, String name, long batches, long failAt, long stream, Pointer message);

    int FletchingProducerVerifyArray(
        String backend, String name, long schema, long array, Pointer message);

    int FletchingProducerVerifyStream(
        String backend, String name, long batches, long failAt, long stream, Pointer message);

    void FletchingProducerReadCounters(long[] counters);

    void FletchingProducerResetCounters();
  }

  /** FletchingProducerCounters. */
  static final class Counters {
    final long liveAllocations;
    final long liveSchemas;
    final long liveArrays;
    final long liveStreams;
    final long exported;
    final long released;
    final long doubleReleased;

    private Counters(long[] values) {
      liveAllocations = values[0];
      liveSchemas = values[1];
      liveArrays = values[2];
      liveStreams = values[3];
      exported = values[4];
      released = values[5];
      doubleReleased = values[6];
    }
  }

  String[] caseNames() {
    String[] names = new String[functions.FletchingProducerCaseCount()];
    for (int i = 0; i < names.length; i++) {
      names[i] = functions.FletchingProducerCaseName(i);
    }
    return names;
  }

  /** What the producer exported, moved in. */
  static final class Exported implements AutoCloseable {
    final Schema schema;
    final DeviceArray array;

    Exported(Schema schema, DeviceArray array) {
      this.schema = schema;
      this.array = array;
    }

    @Override
    public void close() {
      schema.close();
      array.close();
    }
  }

  Exported exportArray(String backend, String name) {
    Exported[] exported = new Exported[1];
    Rooms.with(
        Offsets.ARROW_SCHEMA,
        schema ->
            Rooms.with(
                Offsets.ARROW_DEVICE_ARRAY,
                array -> {
                  call(
                      "export",
                      m -> functions.FletchingProducerExportArray(backend, name, schema, array, m));
                  exported[0] = new Exported(Schema.wrap(schema), DeviceArray.wrap(array));
                }));
    return exported[0];
  }

  /** A stream that fails before batch {@code failAt}, unless that is negative. */
  DeviceArrayStream exportStream(String backend, String name, long batches, long failAt) {
    DeviceArrayStream[] exported = new DeviceArrayStream[1];
    Rooms.with(
        Offsets.ARROW_DEVICE_ARRAY_STREAM,
        stream -> {
          call(
              "export",
              m ->
                  functions.FletchingProducerExportStream(
                      backend, name, batches, failAt, stream, m));
          exported[0] = DeviceArrayStream.wrap(stream);
        });
    return exported[0];
  }

  /** How many lines of the dump are as the producer exported them: all. */
  long verifyDump(String dump) {
    byte[] text = (dump + "\0").getBytes(StandardCharsets.UTF_8);
    long[] lines = {0};
    call("dump", m -> functions.FletchingProducerVerifyDump(text, lines, m));
    return lines[0];
  }

  void verifyArray(String backend, String name, Schema schema, DeviceArray array) {
    call(
        "verification",
        m ->
            functions.FletchingProducerVerifyArray(
                backend, name, schema.address(), array.address(), m));
    Reference.reachabilityFence(schema);
    Reference.reachabilityFence(array);
  }

  /** Consumes the stream. */
  void verifyStream(
      String backend, String name, long batches, long failAt, DeviceArrayStream stream) {
    try (stream) {
      call(
          "verification",
          m ->
              functions.FletchingProducerVerifyStream(
                  backend, name, batches, failAt, stream.address(), m));
    }
  }

  Counters counters() {
    long[] values = new long[7];
    functions.FletchingProducerReadCounters(values);
    return new Counters(values);
  }

  void resetCounters() {
    functions.FletchingProducerResetCounters();
  }

  /** Calls a function that takes a message; a code that is not 0 is an exception. */
  static void call(String what, ToIntFunction<Pointer> function) {
    try (Memory message = new Memory(MESSAGE_SIZE)) {
      message.clear();
      int code = function.applyAsInt(message);
      if (code != 0) {
        throw new FletchingException(code, what + ": " + message.getString(0, "UTF-8"));
      }
    }
  }
}
