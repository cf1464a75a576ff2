// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.Schema;
import io.github.fletching.testing.Producer;

/**
 * Every case of the reference producer through Java and back: arrays, streams, failing streams. The
 * system property io.github.fletching.engine chooses the engine, and so the column. Exit codes: 0
 * all cells are ok, 1 one is not, or there is no case.
 */
public final class Program {
  private static final String BACKEND = "cpu";
  private static final long BATCHES = 3;
  private static final long NEVER = -1;
  private static final long FAIL_AT = 2; // before the third

  private final Producer producer = new Producer();
  private int failed;

  private Program() {}

  public static void main(String[] arguments) {
    Program program = new Program();
    String[] names = program.producer.caseNames();
    for (String name : names) {
      program.cell(name, "array", checks -> program.passArray(name, checks));
      program.cell(name, "stream", checks -> program.passStream(name, NEVER, checks));
      program.cell(name, "stream_failure", checks -> program.passStream(name, FAIL_AT, checks));
    }
    System.out.println(names.length + " cases, " + program.failed + " cells failed");
    System.exit(program.failed > 0 || names.length == 0 ? 1 : 0);
  }

  private void cell(String name, String direction, Checks.Work work) {
    Checks checks = new Checks(producer);
    checks.run(work);
    failed += checks.report(BACKEND, name, direction) ? 0 : 1;
  }

  private void passArray(String name, Checks checks) {
    try (Producer.Exported source = producer.exportArray(BACKEND, name)) {
      compareDump(source.schema, source.array, checks);
      try (Schema schema = Reexport.schema(source.schema);
          DeviceArray array = Reexport.array(source.array)) {
        checks.require(source.schema.isReleased(), "the schema was not moved");
        checks.require(source.array.isReleased(), "the array was not moved");
        producer.verifyArray(BACKEND, name, schema, array);
      }
    }
  }

  private void passStream(String name, long failAt, Checks checks) {
    long[] batches = {0};
    DeviceArrayStream stream =
        Reexport.stream(
            producer.exportStream(BACKEND, name, BATCHES, failAt),
            (schema, batch) -> {
              batches[0]++;
              compareDump(schema, batch, checks);
            });
    producer.verifyStream(BACKEND, name, BATCHES, failAt, stream);
    checks.equal("the number of batches", batches[0], failAt == NEVER ? BATCHES : failAt);
  }

  private void compareDump(Schema schema, DeviceArray array, Checks checks) {
    checks.compared("dump", producer.verifyDump(Dump.of(schema, array)));
  }
}
