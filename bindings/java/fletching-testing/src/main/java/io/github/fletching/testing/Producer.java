// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing;

import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.FletchingException;
import io.github.fletching.Schema;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.util.function.ToIntFunction;

/** The reference producer; cpp/producer/producer.h defines every function. */
public final class Producer {
  /** The room for a message. */
  public static final int MESSAGE_SIZE = 1024;

  private static final int ROOM = 256; // for any struct

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
  public static final class Counters {
    public final long liveAllocations;
    public final long liveSchemas;
    public final long liveArrays;
    public final long liveStreams;
    public final long exported;
    public final long released;
    public final long doubleReleased;

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

  /** The names of the cases. */
  public String[] caseNames() {
    String[] names = new String[functions.FletchingProducerCaseCount()];
    for (int i = 0; i < names.length; i++) {
      names[i] = functions.FletchingProducerCaseName(i);
    }
    return names;
  }

  /** What the producer exported, moved in. */
  public static final class Exported implements AutoCloseable {
    public final Schema schema;
    public final DeviceArray array;

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

  /** Exports an array that is ready. */
  public Exported exportArray(String backend, String name) {
    return exported(
        (schema, array, m) ->
            functions.FletchingProducerExportArray(backend, name, schema, array, m));
  }

  /** A function that writes a schema and a device array. */
  interface ArrayExport {
    int write(long schema, long array, Pointer message);
  }

  static Exported exported(ArrayExport export) {
    try (Memory schema = room();
        Memory array = room()) {
      long[] rooms = {Pointer.nativeValue(schema), Pointer.nativeValue(array)};
      call("export", m -> export.write(rooms[0], rooms[1], m));
      return new Exported(Schema.wrap(rooms[0]), DeviceArray.wrap(rooms[1]));
    }
  }

  /** Exports a stream that fails before batch {@code failAt}, unless that is negative. */
  public DeviceArrayStream exportStream(String backend, String name, long batches, long failAt) {
    return exportedStream(
        (stream, m) ->
            functions.FletchingProducerExportStream(backend, name, batches, failAt, stream, m));
  }

  /** A function that writes a device stream. */
  interface StreamExport {
    int write(long stream, Pointer message);
  }

  static DeviceArrayStream exportedStream(StreamExport export) {
    try (Memory room = room()) {
      long stream = Pointer.nativeValue(room);
      call("export", m -> export.write(stream, m));
      return DeviceArrayStream.wrap(stream);
    }
  }

  private static Memory room() {
    Memory room = new Memory(ROOM);
    room.clear();
    return room;
  }

  /** How many lines of the dump are as the producer exported them: all. */
  public long verifyDump(String dump) {
    byte[] text = (dump + "\0").getBytes(StandardCharsets.UTF_8);
    long[] lines = {0};
    call("dump", m -> functions.FletchingProducerVerifyDump(text, lines, m));
    return lines[0];
  }

  /** Compares an array with the one that the producer exports. */
  public void verifyArray(String backend, String name, Schema schema, DeviceArray array) {
    call(
        "verification",
        m ->
            functions.FletchingProducerVerifyArray(
                backend, name, schema.address(), array.address(), m));
    Reference.reachabilityFence(schema);
    Reference.reachabilityFence(array);
  }

  /** Consumes the stream. */
  public void verifyStream(
      String backend, String name, long batches, long failAt, DeviceArrayStream stream) {
    try (stream) {
      call(
          "verification",
          m ->
              functions.FletchingProducerVerifyStream(
                  backend, name, batches, failAt, stream.address(), m));
    }
  }

  /** What the producer has counted. */
  public Counters counters() {
    long[] values = new long[7];
    functions.FletchingProducerReadCounters(values);
    return new Counters(values);
  }

  /** Begins the counts of exported and released arrays again. */
  public void resetCounters() {
    functions.FletchingProducerResetCounters();
  }

  /** Calls a function that takes a message; a code that is not 0 is an exception. */
  public static void call(String what, ToIntFunction<Pointer> function) {
    try (Memory message = new Memory(MESSAGE_SIZE)) {
      message.clear();
      int code = function.applyAsInt(message);
      if (code != 0) {
        throw new FletchingException(code, what + ": " + message.getString(0, "UTF-8"));
      }
    }
  }
}
