// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import io.github.fletching.testing.Cell;

/** Every case of the reference producer through one flavor and back. */
public final class Program {
  private static final String BACKEND = "cpu";
  private static final long BATCHES = 3;
  private static final long NEVER = -1;
  private static final long FAIL_AT = 2;

  private final Structs structs;
  private final Transit transit;
  private final Producer producer = new Producer();
  private long asserted;

  private Program(Structs structs, Transit transit) {
    this.structs = structs;
    this.transit = transit;
  }

  /** Returns the exit code: 0, or 1 when a case failed or there is none. */
  public static int run(Structs structs, Transit transit) {
    return new Program(structs, transit).runAll();
  }

  private interface Body {
    void run(String name);
  }

  private int runAll() {
    String[] names = producer.caseNames();
    int failed = 0;
    for (String name : names) {
      System.out.println(name);
      boolean ok = runCell(name, "array", this::runArray);
      ok &= runCell(name, "stream", n -> runStream(n, NEVER));
      ok &= runCell(name, "stream_failure", n -> runStream(n, FAIL_AT));
      failed += ok ? 0 : 1;
    }
    System.out.printf(
        "%d of %d cases went through %s and back%n",
        names.length - failed, names.length, structs.language);
    return failed == 0 && names.length > 0 ? 0 : 1;
  }

  private boolean runCell(String name, String direction, Body body) {
    asserted = 0;
    long exported = transit.exported();
    long released = transit.released();
    producer.resetCounters();
    Guard.Outcome outcome =
        Guard.run(
            () -> {
              body.run(name);
              requireAtRest(transit.exported() - exported, transit.released() - released);
            });
    String problem = outcome.errno == 0 ? null : outcome.message();
    if (problem != null) {
      System.err.println(structs.language + ": " + name + " " + direction + ": " + problem);
    }
    Cell cell = new Cell(structs.language, BACKEND, "case", name, direction);
    cell.write(asserted, transit.released() - released, problem);
    return problem == null;
  }

  private void runArray(String name) {
    long schema = structs.allocate(structs.schema.size);
    long array = structs.allocate(structs.deviceArraySize);
    long outSchema = structs.allocate(structs.schema.size);
    long outArray = structs.allocate(structs.deviceArraySize);
    try {
      requireNull("export", producer.exportArray(BACKEND, name, schema, array));
      requireCase(name, schema, array);
      requireNull("transit", transit.transit(schema, array, outSchema, outArray));
      requireEqual("release of the moved schema", structs.schema.release.of(schema), 0);
      requireEqual(
          "release of the moved array", structs.array.release.of(structs.arrayOf(array)), 0);
      requireNull("verification", producer.verifyArray(BACKEND, name, outSchema, outArray));
    } finally {
      for (long each : new long[] {schema, outSchema}) {
        transit.schemas().releaseAt(each);
        structs.free(each);
      }
      for (long each : new long[] {array, outArray}) {
        transit.arrays().releaseAt(structs.arrayOf(each));
        structs.free(each);
      }
    }
  }

  private void runStream(String name, long failAt) {
    long stream = structs.allocate(structs.stream.size);
    long outStream = structs.allocate(structs.stream.size);
    long[] batches = {0};
    try {
      requireNull("export", producer.exportStream(BACKEND, name, BATCHES, failAt, stream));
      Streams.Observer observer =
          (schema, array) -> {
            batches[0]++;
            requireCase(name, schema, array);
          };
      requireNull("transit", transit.transitStream(stream, outStream, observer));
      requireEqual("release of the moved stream", structs.stream.release.of(stream), 0);
      requireNull("verification", producer.verifyStream(BACKEND, name, BATCHES, failAt, outStream));
      requireEqual("the number of batches", batches[0], failAt == NEVER ? BATCHES : failAt);
    } finally {
      for (long each : new long[] {stream, outStream}) {
        if (structs.stream.release.of(each) != 0) {
          structs.stream.callRelease.accept(each);
        }
        structs.free(each);
      }
    }
  }

  private void requireCase(String name, long schema, long array) {
    asserted++;
    String own = Describe.describe(structs, schema, structs.arrayOf(array));
    String expected = producer.describe(name);
    if (!own.equals(expected)) {
      throw new TransitException(TransitException.EBADMSG, firstDifference(own, expected));
    }
  }

  private static String firstDifference(String own, String expected) {
    String[] ownLines = own.split("\n");
    String[] expectedLines = expected.split("\n");
    int line = 0;
    while (line < Math.min(ownLines.length, expectedLines.length)
        && ownLines[line].equals(expectedLines[line])) {
      line++;
    }
    return String.format(
        "Java sees '%s', expected '%s'", lineAt(ownLines, line), lineAt(expectedLines, line));
  }

  private static String lineAt(String[] lines, int index) {
    return index < lines.length ? lines[index] : "(the end)";
  }

  /** Everything has been released, ours and the producer's, once. */
  private void requireAtRest(long exported, long released) {
    Producer.Counters counters = producer.counters();
    requireEqual("the number of releases in Java", released, exported);
    requireEqual("whether Java exported anything", exported > 0 ? 1 : 0, 1);
    requireEqual("live_allocations", counters.liveAllocations, 0);
    requireEqual("live_schemas", counters.liveSchemas, 0);
    requireEqual("live_arrays", counters.liveArrays, 0);
    requireEqual("live_streams", counters.liveStreams, 0);
    requireEqual("the producer's released", counters.released, counters.exported);
    requireEqual("double_released", counters.doubleReleased, 0);
  }

  private void requireNull(String what, String problem) {
    asserted++;
    if (problem != null) {
      throw new TransitException(TransitException.EBADMSG, what + ": " + problem);
    }
  }

  private void requireEqual(String what, long seen, long expected) {
    asserted++;
    if (seen != expected) {
      throw new TransitException(
          TransitException.EBADMSG, what + " is " + seen + ", expected " + expected);
    }
  }
}
