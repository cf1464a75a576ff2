// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import io.github.fletching.testing.Cell;
import io.github.fletching.testing.GatedProducer;
import io.github.fletching.testing.Producer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Data of every backend of the reference producer, behind its gate, through Java.
 *
 * <p>Arguments: {@code [--chain] [BACKEND...]}. --chain runs only the chain. Backends: those that
 * are named, else all. The system property io.github.fletching.engine chooses the engine, and so
 * the column. Exit codes: 0 all cells are ok, 1 one is not, or there is no backend.
 */
public final class Devices {
  // One of each layout; devices.py has the same.
  private static final List<String> CASES =
      List.of(
          "int32",
          "utf8",
          "utf8_view",
          "list",
          "struct",
          "dictionary",
          "dense_union",
          "record_batch");
  private static final List<String> WITHOUT_QUEUES = List.of("async", "async_failure", "chain");
  private static final List<String> DIRECTIONS =
      List.of(
          "array",
          "array_control",
          "stream",
          "stream_control",
          "stream_failure",
          "stream_failure_control",
          "async",
          "async_control",
          "async_failure",
          "async_failure_control",
          "chain");

  private final Producer producer = new Producer();
  private final Chain chain = new Chain();
  private int failed;

  private Devices() {}

  public static void main(String[] arguments) {
    List<String> backends = new ArrayList<>(List.of(arguments));
    boolean onlyChain = backends.remove("--chain");
    if (backends.isEmpty()) {
      backends.addAll(Arrays.asList(GatedProducer.backends()));
    }
    Devices devices = new Devices();
    for (String backend : backends) {
      Device device = new Device(backend);
      System.out.println(backend + ": " + device.status + ": " + device.description);
      for (String name : CASES) {
        devices.run(device, name, onlyChain);
      }
    }
    System.out.println(devices.failed + " cells failed");
    System.exit(devices.failed > 0 || backends.isEmpty() ? 1 : 0);
  }

  private void run(Device device, String name, boolean onlyChain) {
    for (String direction : device.hasQueues() ? DIRECTIONS : WITHOUT_QUEUES) {
      if (onlyChain && !direction.equals("chain")) {
        continue;
      }
      if (device.isAbsent()) {
        new Cell(Checks.LANGUAGE, device.backend, "case", name, direction)
            .status(device.status)
            .write(0, 0, device.description);
        continue;
      }
      GatedProducer.awaitAsync(); // a cell that failed may have left a stream behind
      Checks checks = new Checks(producer);
      checks.run(cell -> pass(device, name, direction, cell));
      failed += checks.report(device.backend, name, direction, device.status) ? 0 : 1;
    }
  }

  private void pass(Device device, String name, String direction, Checks checks) {
    if (direction.equals("chain")) {
      chain.run(device.backend, name, checks);
      return;
    }
    try (DeviceCell cell = new DeviceCell(producer, device, name, direction, checks)) {
      if (direction.startsWith("array")) {
        cell.passArray();
      } else if (direction.startsWith("stream")) {
        cell.passStream();
      } else {
        cell.passAsync();
        GatedProducer.awaitAsync();
      }
    }
  }
}
