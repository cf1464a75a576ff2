// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.testing.GatedProducer;
import io.github.fletching.testing.GatedProducer.Queue;
import io.github.fletching.testing.Producer;

/**
 * An array of the reference producer behind a shut gate (cpp/producer/gate.h), and a queue of a
 * consumer that has waited for nothing.
 */
final class Gate {
  static final int NEW = GatedProducer.NEW;
  private static final String CASE = "record_batch";
  private static final Producer PRODUCER = new Producer();

  private final GatedProducer.Gate gate;
  private final Queue queue;
  private final Producer.Exported exported;
  final DeviceArray array;

  Gate(String backend) {
    gate = new GatedProducer.Gate(backend, true);
    queue = new Queue(backend);
    exported = gate.exportArray(CASE);
    array = exported.array;
  }

  static boolean isAbsent(String backend) {
    return GatedProducer.presence(backend)[0].equals("absent");
  }

  DeviceStream stream() {
    return DeviceStream.of(array.deviceType(), queue.handle());
  }

  void open() {
    gate.open();
  }

  /** Lets the queue read the array. */
  void read() {
    queue.read(CASE, array);
  }

  boolean isIdle() {
    return queue.isIdle();
  }

  void verify(int expected) {
    assertNotEquals(0, queue.verify(expected));
  }

  static long liveArrays() {
    return PRODUCER.counters().liveArrays;
  }

  void end() {
    open();
    array.close();
    while (liveArrays() > 0) { // one may be released after its stream
      Releases.pause();
    }
    queue.close();
    gate.close();
    exported.close();
  }
}
