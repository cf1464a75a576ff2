// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import static io.github.fletching.roundtrip.Producer.call;

import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.Schema;
import io.github.fletching.VulkanContext;
import io.github.fletching.abi.Offsets;
import io.github.fletching.testing.NativeLibraries;
import java.lang.ref.Reference;

/** The gates and queues of the reference producer; cpp/producer/gate.h defines every function. */
final class GatedProducer {
  static final int OLD = 0;
  static final int NEW = 1;

  private static final String[] STATUSES = {"real", "stand-in", "absent"};
  private static final int VULKAN_HANDLES = 48; // bytes

  private static final Functions C = NativeLibraries.load("producer", Functions.class);

  private GatedProducer() {}

  // The names are those of C, and JNA looks them up; addresses are a long.
  interface Functions extends Library {
    int FletchingProducerBackendCount();

    String FletchingProducerBackendName(int index);

    int FletchingProducerBackendPresence(String backend, IntByReference out, Pointer message);

    int FletchingProducerGateCreate(String backend, PointerByReference gate, Pointer message);

    int FletchingProducerGateOpen(Pointer gate, Pointer message);

    int FletchingProducerGateDestroy(Pointer gate, Pointer message);

    int FletchingProducerExportArrayBehind(
        Pointer gate, String name, long schema, long array, Pointer message);

    int FletchingProducerExportStreamBehind(
        Pointer gate, String name, long batches, long failAt, long stream, Pointer message);

    int FletchingProducerRunAsync(
        String backend,
        Pointer gate,
        String name,
        long batches,
        long failAt,
        long handler,
        Pointer message);

    void FletchingProducerAwaitAsync();

    int FletchingProducerQueueCreate(String backend, PointerByReference queue, Pointer message);

    long FletchingProducerQueueHandle(Pointer queue);

    int FletchingProducerQueueRead(Pointer queue, String name, long array, Pointer message);

    int FletchingProducerQueueIsIdle(Pointer queue, IntByReference idle, Pointer message);

    int FletchingProducerQueueVerify(
        Pointer queue, int expected, LongByReference compared, Pointer message);

    int FletchingProducerQueueDestroy(Pointer queue, Pointer message);

    int FletchingProducerVulkanHandles(Pointer handles, Pointer message);
  }

  static String[] backends() {
    String[] names = new String[C.FletchingProducerBackendCount()];
    for (int i = 0; i < names.length; i++) {
      names[i] = C.FletchingProducerBackendName(i);
    }
    return names;
  }

  /** "real", "stand-in" or "absent", and the device's name and version, or why it is absent. */
  static String[] presence(String backend) {
    try (Memory text = new Memory(Producer.MESSAGE_SIZE)) {
      text.clear();
      IntByReference presence = new IntByReference();
      call("presence", m -> C.FletchingProducerBackendPresence(backend, presence, text));
      return new String[] {STATUSES[presence.getValue()], text.getString(0, "UTF-8")};
    }
  }

  static VulkanContext vulkan() {
    try (Memory handles = new Memory(VULKAN_HANDLES)) {
      call("Vulkan's handles", m -> C.FletchingProducerVulkanHandles(handles, m));
      long queue = handles.getLong(24);
      return VulkanContext.of(handles.getLong(16), handles.getLong(40))
          .onQueue(queue, queue, handles.getInt(36));
    }
  }

  /** Returns when every async handler is released. */
  static void awaitAsync() {
    C.FletchingProducerAwaitAsync();
  }

  /** Where exports come from: behind a shut gate, or without one from a device without queues. */
  static final class Gate implements AutoCloseable {
    private final String backend;
    private final Pointer gate; // null without

    Gate(String backend, boolean hasQueues) {
      this.backend = backend;
      PointerByReference out = new PointerByReference();
      if (hasQueues) {
        call("gate", m -> C.FletchingProducerGateCreate(backend, out, m));
      }
      gate = out.getValue();
    }

    Producer.Exported exportArray(String name) {
      Producer.Exported[] exported = new Producer.Exported[1];
      Rooms.with(
          Offsets.ARROW_SCHEMA,
          schema ->
              Rooms.with(
                  Offsets.ARROW_DEVICE_ARRAY,
                  array -> {
                    call(
                        "export",
                        m -> C.FletchingProducerExportArrayBehind(gate, name, schema, array, m));
                    exported[0] =
                        new Producer.Exported(Schema.wrap(schema), DeviceArray.wrap(array));
                  }));
      return exported[0];
    }

    DeviceArrayStream exportStream(String name, long batches, long failAt) {
      DeviceArrayStream[] exported = new DeviceArrayStream[1];
      Rooms.with(
          Offsets.ARROW_DEVICE_ARRAY_STREAM,
          stream -> {
            call(
                "export",
                m -> C.FletchingProducerExportStreamBehind(gate, name, batches, failAt, stream, m));
            exported[0] = DeviceArrayStream.wrap(stream);
          });
      return exported[0];
    }

    /** Lets a thread of the producer call the handler. */
    void runAsync(String name, long batches, long failAt, long handler) {
      call(
          "async export",
          m -> C.FletchingProducerRunAsync(backend, gate, name, batches, failAt, handler, m));
    }

    void open() {
      if (gate != null) {
        call("gate", m -> C.FletchingProducerGateOpen(gate, m));
      }
    }

    /** Opens the gate and waits for what is behind it. */
    @Override
    public void close() {
      if (gate != null) {
        call("gate", m -> C.FletchingProducerGateDestroy(gate, m));
      }
    }
  }

  /** A consumer's queue, to be closed before the arrays that it reads are released. */
  static final class Queue implements AutoCloseable {
    private final Pointer queue;

    Queue(String backend) {
      PointerByReference out = new PointerByReference();
      call("queue", m -> C.FletchingProducerQueueCreate(backend, out, m));
      queue = out.getValue();
    }

    /** What a wait needs, valid until the next call. */
    long handle() {
      return C.FletchingProducerQueueHandle(queue);
    }

    /** Enqueues a read of every buffer. */
    void read(String name, DeviceArray array) {
      call("read", m -> C.FletchingProducerQueueRead(queue, name, array.address(), m));
      Reference.reachabilityFence(array);
    }

    boolean isIdle() {
      IntByReference idle = new IntByReference();
      call("queue", m -> C.FletchingProducerQueueIsIdle(queue, idle, m));
      return idle.getValue() != 0;
    }

    /** Waits for the reads; how many bytes are as expected: all. */
    long verify(int expected) {
      LongByReference compared = new LongByReference();
      call("read", m -> C.FletchingProducerQueueVerify(queue, expected, compared, m));
      return compared.getValue();
    }

    /** Waits for what is on the queue: for ever while that is behind a shut gate. */
    @Override
    public void close() {
      call("queue", m -> C.FletchingProducerQueueDestroy(queue, m));
    }
  }
}
