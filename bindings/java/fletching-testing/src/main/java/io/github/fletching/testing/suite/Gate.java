// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.Schema;
import io.github.fletching.VulkanContext;
import io.github.fletching.testing.NativeLibraries;
import java.util.function.ToIntFunction;

/**
 * An array of the reference producer behind a shut gate (cpp/producer/gate.h), and a queue of a
 * consumer that has waited for nothing.
 */
final class Gate {
  static final int OLD = 0;
  static final int NEW = 1;
  private static final int ABSENT = 2;
  private static final String CASE = "record_batch";

  static final Functions C = NativeLibraries.load("producer", Functions.class);

  private final Pointer gate;
  final Pointer queue;
  final DeviceArray array;
  private final Schema schema;

  /** The functions are those of C, and JNA looks them up. */
  interface Functions extends Library {
    int FletchingProducerBackendPresence(String backend, IntByReference out, Pointer message);

    int FletchingProducerGateCreate(String backend, PointerByReference gate, Pointer message);

    int FletchingProducerGateOpen(Pointer gate, Pointer message);

    int FletchingProducerGateDestroy(Pointer gate, Pointer message);

    int FletchingProducerExportArrayBehind(
        Pointer gate, String name, long schema, long array, Pointer message);

    int FletchingProducerQueueCreate(String backend, PointerByReference queue, Pointer message);

    long FletchingProducerQueueHandle(Pointer queue);

    int FletchingProducerQueueRead(Pointer queue, String name, long array, Pointer message);

    int FletchingProducerQueueIsIdle(Pointer queue, IntByReference idle, Pointer message);

    int FletchingProducerQueueVerify(
        Pointer queue, int expected, LongByReference asserted, Pointer message);

    int FletchingProducerQueueDestroy(Pointer queue, Pointer message);

    int FletchingProducerVulkanHandles(Pointer handles, Pointer message);

    void FletchingProducerReadCounters(long[] counters);
  }

  Gate(String backend) {
    PointerByReference out = new PointerByReference();
    call(m -> C.FletchingProducerGateCreate(backend, out, m));
    gate = out.getValue();
    queue = newQueue(backend);
    Raw rawSchema = Raw.schema();
    Raw rawArray = Raw.deviceArray();
    call(
        m ->
            C.FletchingProducerExportArrayBehind(
                gate, CASE, rawSchema.address(), rawArray.address(), m));
    schema = Schema.wrap(rawSchema.address());
    array = DeviceArray.wrap(rawArray.address());
  }

  static boolean isAbsent(String backend) {
    IntByReference presence = new IntByReference();
    call(m -> C.FletchingProducerBackendPresence(backend, presence, m));
    return presence.getValue() == ABSENT;
  }

  static Pointer newQueue(String backend) {
    PointerByReference out = new PointerByReference();
    call(m -> C.FletchingProducerQueueCreate(backend, out, m));
    return out.getValue();
  }

  /** Calls a function that takes a message. */
  private static void call(ToIntFunction<Pointer> function) {
    Memory message = new Memory(1024);
    message.clear();
    int code = function.applyAsInt(message);
    assertEquals(0, code, () -> message.getString(0, "UTF-8"));
  }

  static void destroyQueue(Pointer queue) {
    call(m -> C.FletchingProducerQueueDestroy(queue, m));
  }

  DeviceStream stream(Pointer of) {
    return DeviceStream.of(array.deviceType(), C.FletchingProducerQueueHandle(of));
  }

  DeviceStream stream() {
    return stream(queue);
  }

  void open() {
    call(m -> C.FletchingProducerGateOpen(gate, m));
  }

  /** Lets the queue read the array. */
  void read() {
    call(m -> C.FletchingProducerQueueRead(queue, CASE, array.address(), m));
  }

  boolean isIdle() {
    IntByReference idle = new IntByReference();
    call(m -> C.FletchingProducerQueueIsIdle(queue, idle, m));
    return idle.getValue() != 0;
  }

  void verify(int expected) {
    LongByReference asserted = new LongByReference();
    call(m -> C.FletchingProducerQueueVerify(queue, expected, asserted, m));
    assertNotEquals(0, asserted.getValue());
  }

  static long liveArrays() {
    long[] counters = new long[7];
    C.FletchingProducerReadCounters(counters);
    return counters[2];
  }

  /** What a wait in a command buffer on the producer's queue needs. */
  static VulkanContext vulkan() {
    Memory handles = new Memory(48);
    call(m -> C.FletchingProducerVulkanHandles(handles, m));
    long queue = handles.getLong(24);
    return VulkanContext.of(handles.getLong(16), handles.getLong(40))
        .onQueue(queue, queue, handles.getInt(36));
  }

  void end() {
    open();
    array.close();
    while (liveArrays() > 0) { // one may be released after its stream
      Releases.pause();
    }
    destroyQueue(queue);
    call(m -> C.FletchingProducerGateDestroy(gate, m));
    schema.close();
  }
}
