// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import io.github.fletching.AsyncDeviceStream;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.FletchingException;
import io.github.fletching.Schema;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.GatedProducer;
import io.github.fletching.testing.GatedProducer.Gate;
import io.github.fletching.testing.GatedProducer.Queue;
import io.github.fletching.testing.Producer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;

/** What one cell passes through Java, and whether Java waits for it: tests/roundtrip/README.md. */
final class DeviceCell implements AutoCloseable {
  private static final long BATCHES = 3;
  private static final long NEVER = -1;
  private static final long FAIL_AT = 2; // before the third
  private static final int EIO = 5;

  private final Producer producer;
  private final Device device;
  private final String name; // of the case
  private final Checks checks;
  private final boolean isControl; // read without a wait, and see the old data
  private final boolean fails; // the stream does, midway
  private final Gate gate;

  // What was received, and the error that ended a stream, or null.
  private Schema schema;
  private volatile String schemaDump; // as it was sent
  private final List<DeviceArray> batches = new ArrayList<>();
  private DeviceType deviceType;
  private FletchingException ended;

  DeviceCell(Producer producer, Device device, String name, String direction, Checks checks) {
    this.producer = producer;
    this.device = device;
    this.name = name;
    this.checks = checks;
    isControl = direction.endsWith("_control");
    fails = direction.contains("_failure");
    gate = new Gate(device.backend, device.hasQueues());
  }

  @Override
  public void close() {
    batches.forEach(DeviceArray::close);
    if (schema != null) {
      schema.close();
    }
    gate.close();
  }

  void passArray() {
    Producer.Exported exported = gate.exportArray(name);
    schema = exported.schema;
    schemaDump = Dump.of(schema);
    batches.add(exported.array);
    requireDumps();
    requireArrived();
  }

  void passStream() {
    try (DeviceArrayStream stream = gate.exportStream(name, BATCHES, fails ? FAIL_AT : NEVER)) {
      schema = stream.schema();
      schemaDump = Dump.of(schema);
      deviceType = stream.deviceType();
      stream.forEach(batches::add);
    } catch (FletchingException e) {
      ended = e;
    }
    requireDumps();
    requireContent();
  }

  /**
   * A failure overtakes batches that were requested: a stream that fails requests one at a time.
   */
  void passAsync() {
    try (AsyncDeviceStream stream = new AsyncDeviceStream()) {
      stream.onSchema(lent -> schemaDump = Dump.of(lent));
      Received received = new Received(fails ? 1 : BATCHES);
      stream.subscribe(received);
      gate.runAsync(name, BATCHES, fails ? FAIL_AT : NEVER, stream.handlerAddress());
      schema = stream.schema().toCompletableFuture().join();
      deviceType = stream.deviceType();
      Throwable thrown = received.end.join();
      if (thrown instanceof FletchingException) {
        ended = (FletchingException) thrown;
      } else {
        checks.require(thrown == null, "the stream ends: " + thrown);
      }
    }
    requireDumps();
    requireContent();
  }

  private final class Received implements Flow.Subscriber<DeviceArray> {
    private final long first;
    final CompletableFuture<Throwable> end = new CompletableFuture<>();
    private Flow.Subscription subscription;

    Received(long first) {
      this.first = first;
    }

    @Override
    public void onSubscribe(Flow.Subscription started) {
      subscription = started;
      subscription.request(first);
    }

    @Override
    public void onNext(DeviceArray batch) {
      batches.add(batch);
      subscription.request(1);
    }

    @Override
    public void onError(Throwable thrown) {
      end.complete(thrown);
    }

    @Override
    public void onComplete() {
      end.complete(null);
    }
  }

  /** Compares every field, before any release is hooked: a hook is another private_data. */
  private void requireDumps() {
    for (DeviceArray batch : batches) {
      checks.compared("dump", producer.verifyDump(schemaDump + Dump.of(batch)));
    }
  }

  /** Checks what a stream has returned, and how it ended. */
  private void requireContent() {
    checks.equal("the number of batches", batches.size(), fails ? FAIL_AT : BATCHES);
    checks.require(fails == (ended != null), "the stream ends: " + ended);
    if (ended != null) {
      String text = "case " + name + ": the stream fails on purpose before batch " + FAIL_AT;
      checks.equal("the errno value", ended.errno(), EIO);
      checks.require(ended.getMessage().equals(text), "the text: " + ended.getMessage());
    }
    requireArrived();
    if (ended != null) {
      requireKept();
    }
  }

  /** Hooks everything, and does the steps of the direction. */
  private void requireArrived() {
    schema.attach(Reexport.count());
    batches.forEach(batch -> batch.attach(Reexport.count()));
    if (!device.hasQueues()) {
      batches.forEach(this::requireNothingToWaitFor);
    } else if (isControl) {
      requireOldWithoutWait();
    } else {
      requireWaits();
    }
    for (DeviceArray batch : batches) {
      producer.verifyArray(device.backend, name, schema, batch);
    }
  }

  private void requireNothingToWaitFor(DeviceArray batch) {
    checks.equal("sync_event on a device without queues", batch.syncEvent(), 0);
    requireReady(batch, true);
    device.waitOn(batch, 0);
    device.synchronize(batch);
  }

  private void requireReady(DeviceArray batch, boolean expected) {
    checks.require(device.isReady(batch) == expected, "ready: expected " + expected);
  }

  /**
   * With the gate shut no event has happened, and a wait on a queue returns at once and delays the
   * reads on it, while a read on another queue completes. With the gate open the reads see the new
   * data, the host's wait returns, and the events have happened.
   */
  private void requireWaits() {
    try (Queue careful = new Queue(device.backend);
        Queue careless = new Queue(device.backend)) {
      try {
        batches.forEach(batch -> hold(careful, batch));
        requireOld(careless); // while this one completes, the other would have
        checks.require(!careful.isIdle(), "a read on a queue that waits is done behind the gate");
      } finally {
        gate.open(); // before the queues are closed, which wait for what is on them
      }
      checks.compared("the read on a queue that has waited", careful.verify(GatedProducer.NEW));
      for (DeviceArray batch : batches) {
        device.synchronize(batch);
        requireReady(batch, true);
      }
    }
  }

  private void hold(Queue queue, DeviceArray batch) {
    checks.require(batch.syncEvent() != 0, "sync_event is NULL");
    requireReady(batch, false);
    device.waitOn(batch, queue.handle());
    queue.read(name, batch);
  }

  private void requireOld(Queue careless) {
    batches.forEach(batch -> careless.read(name, batch));
    checks.compared("the read on a queue that has not waited", careless.verify(GatedProducer.OLD));
  }

  /** The negative control: a queue that has not waited reads the old data, at once. */
  private void requireOldWithoutWait() {
    try (Queue careless = new Queue(device.backend)) {
      try {
        requireOld(careless);
        batches.forEach(batch -> requireReady(batch, false));
      } finally {
        gate.open();
      }
    }
  }

  /** Passes the batches and the failure on as a stream, in which the producer finds both. */
  private void requireKept() {
    Iterator<DeviceArray> kept = List.copyOf(batches).iterator();
    Iterator<DeviceArray> failing =
        new Iterator<>() {
          @Override
          public boolean hasNext() {
            return true;
          }

          @Override
          public DeviceArray next() {
            if (kept.hasNext()) {
              return kept.next();
            }
            throw ended;
          }
        };
    DeviceArrayStream stream = DeviceArrayStream.of(schema, deviceType, failing);
    producer.verifyStream(device.backend, name, BATCHES, FAIL_AT, stream);
  }
}
