// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing;

import static io.github.fletching.testing.Producer.call;

import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.VulkanContext;
import java.lang.ref.Reference;

/** The gates and queues of the reference producer; cpp/producer/gate.h defines every function. */
public final class GatedProducer {
  /** The data of an array before its gate is open. */
  public static final int OLD = 0;

  /** The data behind the gate. */
  public static final int NEW = 1;

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

  /** The names of the backends. */
  public static String[] backends() {
    String[] names = new String[C.FletchingProducerBackendCount()];
    for (int i = 0; i < names.length; i++) {
      names[i] = C.FletchingProducerBackendName(i);
    }
    return names;
  }

  /** "real", "stand-in" or "absent", and the device's name and version, or why it is absent. */
  public static String[] presence(String backend) {
    try (Memory text = new Memory(Producer.MESSAGE_SIZE)) {
      text.clear();
      IntByReference presence = new IntByReference();
      call("presence", m -> C.FletchingProducerBackendPresence(backend, presence, text));
      return new String[] {STATUSES[presence.getValue()], text.getString(0, "UTF-8")};
    }
  }

  /** What a wait in a command buffer on the producer's queue needs. */
  public static VulkanContext vulkan() {
    try (Memory handles = new Memory(VULKAN_HANDLES)) {
      call("Vulkan's handles", m -> C.FletchingProducerVulkanHandles(handles, m));
      long queue = handles.getLong(24);
      return VulkanContext.of(handles.getLong(16), handles.getLong(40))
          .onQueue(queue, queue, handles.getInt(36));
    }
  }

  /** Returns when every async handler is released. */
  public static void awaitAsync() {
    C.FletchingProducerAwaitAsync();
  }

  /** Where exports come from: behind a shut gate, or without one from a device without queues. */
  public static final class Gate implements AutoCloseable {
    private final String backend;
    private final Pointer gate; // null without

    /** Shuts a gate, where the backend has queues. */
    public Gate(String backend, boolean hasQueues) {
      this.backend = backend;
      PointerByReference out = new PointerByReference();
      if (hasQueues) {
        call("gate", m -> C.FletchingProducerGateCreate(backend, out, m));
      }
      gate = out.getValue();
    }

    /** Exports an array, whose data are behind the gate. */
    public Producer.Exported exportArray(String name) {
      return Producer.exported(
          (schema, array, m) -> C.FletchingProducerExportArrayBehind(gate, name, schema, array, m));
    }

    /** Exports a stream, whose batches are behind the gate. */
    public DeviceArrayStream exportStream(String name, long batches, long failAt) {
      return Producer.exportedStream(
          (stream, m) ->
              C.FletchingProducerExportStreamBehind(gate, name, batches, failAt, stream, m));
    }

    /** Lets a thread of the producer call the handler. */
    public void runAsync(String name, long batches, long failAt, long handler) {
      call(
          "async export",
          m -> C.FletchingProducerRunAsync(backend, gate, name, batches, failAt, handler, m));
    }

    /** Lets the work behind the gate run. */
    public void open() {
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
  public static final class Queue implements AutoCloseable {
    private final Pointer queue;

    /** Makes a queue that has waited for nothing. */
    public Queue(String backend) {
      PointerByReference out = new PointerByReference();
      call("queue", m -> C.FletchingProducerQueueCreate(backend, out, m));
      queue = out.getValue();
    }

    /** What a wait needs, valid until the next call. */
    public long handle() {
      return C.FletchingProducerQueueHandle(queue);
    }

    /** Enqueues a read of every buffer. */
    public void read(String name, DeviceArray array) {
      call("read", m -> C.FletchingProducerQueueRead(queue, name, array.address(), m));
      Reference.reachabilityFence(array);
    }

    /** Whether all that is on the queue is done. */
    public boolean isIdle() {
      IntByReference idle = new IntByReference();
      call("queue", m -> C.FletchingProducerQueueIsIdle(queue, idle, m));
      return idle.getValue() != 0;
    }

    /** Waits for the reads; how many bytes are as expected: all. */
    public long verify(int expected) {
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
