// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import java.util.function.LongConsumer;

/**
 * Owner of an ArrowDeviceArray and its event. See {@link Owner}.
 *
 * <p>See "Structure definitions" in the Arrow C device data interface.
 */
public final class DeviceArray extends ArrayOwner {
  DeviceArray(Slot slot) {
    super(Kind.DEVICE_ARRAY, slot);
  }

  /**
   * Moves the struct at an address into an owner; see {@link Array#wrap} for requirements and
   * errors. sync_event must be NULL or an event of the device type.
   *
   * @param address the address of a struct
   * @return the owner
   */
  public static DeviceArray wrap(long address) {
    return new DeviceArray(imported(Kind.DEVICE_ARRAY, address));
  }

  /**
   * Owns the struct that a C function fills; see {@link Array#filledBy}.
   *
   * @param function the function, which is called once
   * @return the owner
   */
  public static DeviceArray filledBy(LongConsumer function) {
    return new DeviceArray(filled(Kind.DEVICE_ARRAY, function));
  }

  /**
   * The device type of the buffers.
   *
   * @return the device type
   */
  public DeviceType deviceType() {
    int value = C.getInt(enter("read") + Fields.DEVICE_ARRAY_DEVICE_TYPE);
    leave();
    return DeviceType.of(value);
  }

  /**
   * The device id within the device type; -1 where it does not matter, as on the CPU.
   *
   * @return the device id
   */
  public long deviceId() {
    long value = C.getLong(enter("read") + Fields.DEVICE_ARRAY_DEVICE_ID);
    leave();
    return value;
  }

  /**
   * The address of the event to wait on before reading a buffer. It is valid until the release.
   *
   * @return the address; 0 for none
   */
  public long syncEvent() {
    long value = C.getAddress(enter("read") + Fields.DEVICE_ARRAY_SYNC_EVENT);
    leave();
    return value;
  }

  boolean hasZeroReserved() {
    long reserved = enter("read") + Fields.DEVICE_ARRAY_RESERVED;
    boolean zero = (C.getLong(reserved) | C.getLong(reserved + 8) | C.getLong(reserved + 16)) == 0;
    leave();
    return zero;
  }

  /**
   * Moves a child out as a device array on the same device, with the parent's event. The event
   * lives until the parent and all taken children are released; for that, release and private_data
   * of both structs are replaced. See {@link Array#takeChild}.
   *
   * @param index the index, from 0
   * @return the child
   */
  public DeviceArray takeChild(int index) {
    return new DeviceArray(Tree.takeChild(this, index));
  }

  /**
   * Moves the dictionary out of the array, as {@link #takeChild} does.
   *
   * @return the dictionary
   */
  public DeviceArray takeDictionary() {
    return new DeviceArray(Tree.takeDictionary(this));
  }

  @Override
  void moveBelow(long own, long below, long to) {
    boolean hasEvent = C.getAddress(own + Fields.DEVICE_ARRAY_SYNC_EVENT) != 0;
    if (hasEvent) {
      Share event = Share.Parent.hold(own);
      try {
        Share.Hook.attach(Kind.ARRAY, below, event);
      } catch (Throwable noMemory) { // the parent remains the only user
        event.leave(null);
        throw noMemory;
      }
    }
    Kind.ARRAY.move(below, to);
    copyDevice(own, to);
  }

  /** Copies the device and the event, which follow the array. */
  static void copyDevice(long from, long to) {
    long first = Fields.DEVICE_ARRAY_DEVICE_ID;
    C.copy(from + first, to + first, Fields.DEVICE_ARRAY_RESERVED - first);
  }

  // --- The event

  /**
   * Blocks until the event has completed. The host may then read the buffers that it can access.
   * Returns at once if the event is NULL.
   *
   * <p>CUDA, HIP and OpenCL events are waited on through the vendor's library, which the first
   * operation loads. Vulkan needs a {@link VulkanContext}, every other device type a {@link
   * Waiter}. Throws if the event cannot be waited on; the wait is never skipped.
   *
   * <p>CUDA contexts: an operation on a stream runs in the stream's context. A default stream
   * belongs to the current context if that is a context of the array's device, and otherwise to the
   * device's primary context if it is already active. Every other operation runs in the current
   * context, or if there is none, in the device's primary context. Operations never create a
   * context, and they restore the thread's context, or with HIP the thread's device. A virtual
   * thread has the context of its carrier: call this on a platform thread if the context matters.
   * While another thread captures a graph, operations neither fail nor disturb the capture.
   * However, HIP before ROCm 7.2 may fail to report the state of an event while any thread captures
   * in global mode, and may invalidate that capture.
   *
   * <p>Runtimes cannot be interrupted: an interrupt does not end the wait, and the thread stays
   * interrupted. A waiter may behave differently. Keep the array open until this method returns.
   * Thread-safe.
   *
   * <p>See "Synchronization Events" in the Arrow C device data interface.
   *
   * @throws FletchingException from all event operations: ENOENT if the runtime's library is not
   *     found, ENOSYS if it lacks a function, ENOTSUP if the runtime does not support the
   *     operation, EINVAL for an invalid or unsuitable argument, EBUSY for a stream that is being
   *     captured into a graph, and EIO for any other runtime error, with its name in the message. A
   *     waiter may throw other errors. After an error the buffers' contents are unspecified: do not
   *     read them.
   */
  public void synchronize() {
    Events.synchronize(this);
  }

  /**
   * Makes later work on the stream wait for the event, and returns without waiting: kernels
   * enqueued afterwards may read the buffers. A stream that is being captured into a graph is
   * rejected with EBUSY, and the capture continues; see {@link DeviceStream#onCapture(OnCapture)}.
   * Errors and threads: as {@link #synchronize()}.
   *
   * @param stream the stream that must wait
   */
  public void waitOn(DeviceStream stream) {
    Events.waitOn(this, stream);
  }

  /**
   * Whether the event has completed. Does not block. Errors and threads: as {@link #synchronize()}.
   *
   * @return whether the event has completed
   */
  public boolean isReady() {
    return Events.isReady(this);
  }

  /**
   * {@link #synchronize()} for Vulkan. Polls with sleeps of up to a millisecond, because Vulkan has
   * no host wait for a VkEvent. The event must not be a device-only event. Throws ENOENT without
   * libfletching.
   *
   * @param context the event's VkDevice
   */
  public void synchronize(VulkanContext context) {
    context.synchronize(this);
  }

  /**
   * Records a wait for the event into a command buffer: later commands see all writes before the
   * event. Submit the command buffer to the producer's queue, because a VkEvent orders the commands
   * of one queue only; another queue fails with ENOTSUP. Does not block.
   *
   * <p>The command buffer is a VkCommandBuffer in the recording state, outside of a render pass,
   * and used by this thread only. The array must live until the command buffer has completed.
   *
   * @param context the event's VkDevice and the queues
   * @param commandBuffer the command buffer
   */
  public void waitOn(VulkanContext context, long commandBuffer) {
    context.waitOn(this, commandBuffer);
  }

  /**
   * {@link #isReady()} for Vulkan. The event must not be a device-only event.
   *
   * @param context the event's VkDevice
   * @return whether the event has completed
   */
  public boolean isReady(VulkanContext context) {
    return context.isReady(this);
  }

  /**
   * Sets a sync_event that completes when all current work on the stream is done. The work that
   * fills the buffers must already be enqueued, and later work must not write to them. Pass the
   * array on afterwards.
   *
   * <p>The event is created in the stream's context, without timing, and recorded. Its address is
   * stable. It lives until the array and every child moved out of it are released; the last release
   * destroys it, on any thread. Destroying a context destroys its events: the release then skips
   * the event if the driver reports this, which is reliable for a primary context with CUDA 12.0 or
   * later.
   *
   * @param stream the stream with the work that fills the buffers
   * @throws FletchingException as {@link #synchronize()}; ENOTSUP for device types other than those
   *     of CUDA, HIP and OpenCL; EBUSY for a stream that is being captured; EINVAL if the array has
   *     an event, and if it or an array below it is malformed. The array is then unchanged. Only
   *     one call at a time is allowed for an array.
   */
  public void exportWithEvent(DeviceStream stream) {
    Events.export(this, stream);
  }

  /**
   * Closes the array when all current work on the stream is done. For consumers whose kernels still
   * read the buffers: {@link #close} would free the memory during the reads.
   *
   * <p>The array is closed in every case, and never released early:
   *
   * <ul>
   *   <li>Normally this returns at once. The release callback runs later on a daemon thread of this
   *       library, never inside a driver callback. The stream's context is current then, and the
   *       callback may free memory while another thread captures. Up to 64 callbacks may block
   *       without delaying the others. Children moved out earlier are not waited for.
   *   <li>Without a thread or memory, it waits for the stream and releases the array.
   *   <li>If it cannot wait either, it leaks the array, counts the leak and throws the reason.
   *   <li>It releases the array at once if its device type has no runtime, and the stream is 0 and
   *       also of such a type. A stream of any runtime may read host memory.
   * </ul>
   *
   * <p>With {@link OnCapture#KEEP}, an array whose stream is being captured stays pending until the
   * capture has ended and the stream has completed its work; use it if the graph does not read the
   * array. The stream must live until then.
   *
   * <p>If the driver does not report the state of the event, the array stays pending until it does;
   * see {@link #pendingReleases}. If the driver reports that the device or the context is lost, the
   * array is released, because no work can read it. Arrays that are pending at JVM shutdown are not
   * released.
   *
   * @param stream the stream with the work that reads the buffers
   * @throws FletchingException as {@link #synchronize()}; ENOTSUP for device types other than those
   *     of CUDA, HIP and OpenCL; EINVAL for a stream of another runtime; EBUSY for a stream that is
   *     being captured, because the buffers are read whenever the graph is launched. The array is
   *     leaked.
   * @throws IllegalStateException if the array is closed
   */
  public void releaseAfter(DeviceStream stream) {
    ReleaseAfter.run(this, stream);
  }

  /**
   * Current counts of the arrays passed to {@link #releaseAfter}.
   *
   * @return the counts
   */
  public static PendingReleases pendingReleases() {
    return Reaper.counts();
  }

  /**
   * Moves the array and its event into a {@link Shared}, which several users may read.
   *
   * @return the shared struct
   */
  public Shared<DeviceArray> share() {
    return Shared.of(this, DeviceArray::new);
  }

  // --- DLPack

  /**
   * Moves the array into a DLPack tensor without a copy.
   *
   * <p>Shape: the array's length, then one dimension for each fixed-size list around the values, or
   * the dimensions of arrow.fixed_shape_tensor. Strides are always set, in elements. A tensor
   * without elements has a NULL data pointer. arrow.opaque with the vendor "DLPack" becomes the
   * DLPack type that it names.
   *
   * <p>Events: the consumer's stream is first ordered after the array's event, which lives on in
   * the tensor. Without a stream, an array with an event is rejected.
   *
   * <p>Nulls are an error. The validity bitmap is read if the host can access it and no work is
   * pending; otherwise a null_count of -1 is treated as nulls.
   *
   * <p>Ownership: the tensor's deleter releases the array, on any thread. After an error the caller
   * still owns the array. The caller keeps the schema.
   *
   * <p>See "DLManagedTensorVersioned" in DLPack and "__dlpack__" in the Python array API.
   *
   * @param schema the type of the array
   * @param options how to handle the event, nulls and types that DLPack lacks
   * @return the tensor
   * @throws FletchingException EINVAL for malformed structs, a released child and an unhandled
   *     event; ENOTSUP for a type or nulls that a tensor cannot represent; ERANGE for a device id
   *     beyond DLPack's 32 bits; ENOMEM; with a stream also the errors of {@link #synchronize()}
   * @throws IllegalStateException if the schema or the array is closed
   */
  public Tensor toDlpack(Schema schema, DlpackExportOptions options) {
    return TensorExport.run(Kind.TENSOR, schema, this, options);
  }

  /**
   * Moves the array into a DLPack tensor with the default options.
   *
   * @param schema the type of the array
   * @return the tensor
   */
  public Tensor toDlpack(Schema schema) {
    return toDlpack(schema, DlpackExportOptions.defaults());
  }

  /**
   * Moves the array into a legacy tensor, the struct from before DLPack 1.0. It has no flags:
   * throws EINVAL unless the options declare the memory writable.
   *
   * @param schema the type of the array
   * @param options as for {@link #toDlpack}
   * @return the tensor
   */
  public Tensor toLegacyDlpack(Schema schema, DlpackExportOptions options) {
    return TensorExport.run(Kind.LEGACY_TENSOR, schema, this, options);
  }

  /**
   * Moves a CPU device array into an {@link Array}.
   *
   * @return the array
   * @throws FletchingException EINVAL for another device type, and for an array with an event,
   *     which an ArrowArray cannot carry; the array is then unchanged
   */
  public Array toHost() {
    if (!deviceType().equals(DeviceType.CPU)) {
      throw FletchingException.invalid(
          "toHost: wrong device type: expected cpu, got " + deviceType());
    }
    if (syncEvent() != 0) {
      throw FletchingException.invalid("toHost: sync_event not NULL: expected none on cpu");
    }
    Slot host = Slot.take(Kind.ARRAY);
    Slot source = takeSlot("toHost");
    Kind.ARRAY.move(source.address, host.address);
    source.free();
    return new Array(host);
  }
}
