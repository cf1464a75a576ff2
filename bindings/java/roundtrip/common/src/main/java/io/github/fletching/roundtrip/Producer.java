// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import com.sun.jna.Structure;
import io.github.fletching.testing.NativeLibraries;

/** The reference producer; cpp/producer/producer.h defines every function. */
final class Producer {
  private static final int MESSAGE_SIZE = 1024;

  private final Functions functions = NativeLibraries.load("producer", Functions.class);
  private final Pointer message = new Memory(MESSAGE_SIZE);

  // The names are those of C, and JNA looks them up.
  interface Functions extends Library {
    int FletchingProducerCaseCount();

    String FletchingProducerCaseName(int index);

    String FletchingProducerDescribe(String name);

    int FletchingProducerExportArray(
        String backend, String name, Pointer schema, Pointer array, Pointer message);

    int FletchingProducerExportStream(
        String backend, String name, long batches, long failAt, Pointer stream, Pointer message);

    int FletchingProducerVerifyArray(
        String backend, String name, Pointer schema, Pointer array, Pointer message);

    int FletchingProducerVerifyStream(
        String backend, String name, long batches, long failAt, Pointer stream, Pointer message);

    void FletchingProducerReadCounters(Counters counters);

    void FletchingProducerResetCounters();
  }

  /** FletchingProducerCounters. */
  @Structure.FieldOrder({
    "liveAllocations",
    "liveSchemas",
    "liveArrays",
    "liveStreams",
    "exported",
    "released",
    "doubleReleased"
  })
  public static final class Counters extends Structure {
    public long liveAllocations;
    public long liveSchemas;
    public long liveArrays;
    public long liveStreams;
    public long exported;
    public long released;
    public long doubleReleased;
  }

  String[] caseNames() {
    String[] names = new String[functions.FletchingProducerCaseCount()];
    for (int i = 0; i < names.length; i++) {
      names[i] = functions.FletchingProducerCaseName(i);
    }
    return names;
  }

  String describe(String name) {
    return functions.FletchingProducerDescribe(name);
  }

  /** This and the following return null, or what went wrong. */
  String exportArray(String backend, String name, long schema, long array) {
    return line(
        functions.FletchingProducerExportArray(
            backend, name, new Pointer(schema), new Pointer(array), message));
  }

  String exportStream(String backend, String name, long batches, long failAt, long stream) {
    return line(
        functions.FletchingProducerExportStream(
            backend, name, batches, failAt, new Pointer(stream), message));
  }

  String verifyArray(String backend, String name, long schema, long array) {
    return line(
        functions.FletchingProducerVerifyArray(
            backend, name, new Pointer(schema), new Pointer(array), message));
  }

  String verifyStream(String backend, String name, long batches, long failAt, long stream) {
    return line(
        functions.FletchingProducerVerifyStream(
            backend, name, batches, failAt, new Pointer(stream), message));
  }

  Counters counters() {
    Counters counters = new Counters();
    functions.FletchingProducerReadCounters(counters);
    return counters;
  }

  void resetCounters() {
    functions.FletchingProducerResetCounters();
  }

  private String line(int code) {
    return code == 0 ? null : "errno " + code + ": " + message.getString(0, "UTF-8");
  }
}
