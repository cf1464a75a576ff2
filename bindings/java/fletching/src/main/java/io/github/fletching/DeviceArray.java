// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import java.util.function.LongConsumer;

/**
 * Owns an ArrowDeviceArray, with the event that it has. See {@link Owner}.
 *
 * <p>Text: Arrow C device data interface, "Structure definitions".
 */
public final class DeviceArray extends ArrayOwner {
  DeviceArray(Slot slot) {
    super(Kind.DEVICE_ARRAY, slot);
  }

  /**
   * Moves the struct at an address in; see {@link Array#wrap} for promises and errors. sync_event
   * is NULL or the event of the device type.
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
   * The type of the device that the buffers are on.
   *
   * @return the type of the device that the buffers are on
   */
  public DeviceType deviceType() {
    int value = C.getInt(enter("read") + Fields.DEVICE_ARRAY_DEVICE_TYPE);
    leave();
    return DeviceType.of(value);
  }

  /**
   * Which device of that type; -1 where it does not matter, as on the CPU.
   *
   * @return which device of that type
   */
  public long deviceId() {
    long value = C.getLong(enter("read") + Fields.DEVICE_ARRAY_DEVICE_ID);
    leave();
    return value;
  }

  /**
   * The event to wait on before a buffer is read, 0 for none. It lives until the release.
   *
   * @return the event to wait on before a buffer is read, 0 for none
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
   * Moves a child out, as a device array on the same device with the parent's event, which lives
   * until the parent and every child that was taken are released: then release and private_data of
   * both change. See {@link Array#takeChild}.
   *
   * @param index the index, from 0
   * @return the child
   */
  public DeviceArray takeChild(int index) {
    return new DeviceArray(Tree.takeChild(this, index));
  }

  /**
   * The same for the dictionary.
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
      } catch (Throwable noMemory) { // of the two users the parent stays
        event.leave(null);
        throw noMemory;
      }
    }
    Kind.ARRAY.move(below, to);
    copyDevice(own, to);
  }

  /** Writes the device and the event, which are behind the array. */
  static void copyDevice(long from, long to) {
    long first = Fields.DEVICE_ARRAY_DEVICE_ID;
    C.copy(from + first, to + first, Fields.DEVICE_ARRAY_RESERVED - first);
  }

  // --- The event

  /**
   * Blocks until the event has happened: then the host may read what it can read of the buffers. An
   * event that is NULL is nothing to wait for.
   *
   * <p>Events of CUDA, HIP and OpenCL are waited on through the vendor's library, which the first
   * operation loads; Vulkan needs a {@link VulkanContext}, every other device type a {@link
   * Waiter}. An event that there is no way to wait on is an error, never skipped.
   *
   * <p>CUDA contexts: an operation on a stream happens in the stream's own context. A default
   * stream is that of the current context if this is of the array's device, else that of the
   * device's primary context, if that is active already. Every other operation happens in the
   * current context; without one, in the primary context of the device. No operation creates a
   * context, and each restores the thread's context, or the thread's device with HIP. A virtual
   * thread has the context of its carrier: call this on a platform thread where it matters. While
   * another thread captures a graph, the operations neither fail nor disturb the capture; HIP
   * before ROCm 7.2 may refuse to say whether an event has happened while any thread captures in
   * global mode, and invalidate that capture.
   *
   * <p>No runtime can be interrupted: an interrupt does not end the wait, and the thread stays
   * interrupted. A waiter may do otherwise. Keep the array open until this returns. Any thread,
   * several at once.
   *
   * <p>Text: Arrow C device data interface, "Synchronization Events".
   *
   * @throws FletchingException of this and the other operations: ENOENT when the library of the
   *     runtime is not found, ENOSYS when it lacks a function, ENOTSUP when the runtime does not
   *     support the operation, EINVAL for what cannot be an event or does not fit, EBUSY for a
   *     stream that is being captured into a graph, EIO for what else the runtime reports, whose
   *     own name of it is in the text; what a waiter throws. After an error nothing is known of the
   *     buffers: do not read them.
   */
  public void synchronize() {
    Events.synchronize(this);
  }

  /**
   * Lets what is enqueued on the stream from now on wait for the event, and returns while it is
   * still pending: then kernels on that stream may read the buffers. A stream that is being
   * captured into a graph is refused with EBUSY, and the capture continues; see {@link
   * DeviceStream#onCapture(OnCapture)}. Errors and threads: as {@link #synchronize()}.
   *
   * @param stream the stream
   */
  public void waitOn(DeviceStream stream) {
    Events.waitOn(this, stream);
  }

  /**
   * Whether the event has happened. Does not block. Errors and threads: as {@link #synchronize()}.
   *
   * @return whether the event has happened
   */
  public boolean isReady() {
    return Events.isReady(this);
  }

  /**
   * {@link #synchronize()} for Vulkan. Vulkan has no host wait for a VkEvent: it is asked again and
   * again, with sleeps of up to a millisecond in between. The event must not be one that only the
   * device can use. ENOENT without libfletching.
   *
   * @param context the context
   */
  public void synchronize(VulkanContext context) {
    context.synchronize(this);
  }

  /**
   * Records a wait for the event into a command buffer: commands behind it see what was written
   * before the event. It has to be submitted to the producer's queue, since a VkEvent orders the
   * commands of one queue only; ENOTSUP for another one. Does not block.
   *
   * <p>The command buffer is a VkCommandBuffer in the recording state and outside of a render pass,
   * used by this thread alone. The array lives until the command buffer is done.
   *
   * @param context the context
   * @param commandBuffer the command buffer
   */
  public void waitOn(VulkanContext context, long commandBuffer) {
    context.waitOn(this, commandBuffer);
  }

  /**
   * {@link #isReady()} for Vulkan. The event must not be one that only the device can use.
   *
   * @param context the context
   * @return whether the event has happened
   */
  public boolean isReady(VulkanContext context) {
    return context.isReady(this);
  }

  /**
   * Sets a sync_event that happens when everything is done that is on the stream now: the work that
   * fills the buffers has to be there already, and nothing on it may write to them later. Move the
   * array on afterwards.
   *
   * <p>The event is created in the stream's context, without timing, and recorded. It lives, at the
   * same address, until the array is released and the last child that was moved out of it too; the
   * last of these releases destroys it, on whatever thread. A context that was destroyed has
   * destroyed the event; then the release leaves it alone, as far as the driver reports this:
   * reliably with a primary context and CUDA 12.0 or later.
   *
   * @param stream the stream
   * @throws FletchingException as {@link #synchronize()}; ENOTSUP for device types other than those
   *     of CUDA, HIP and OpenCL; EBUSY for a stream that is being captured; EINVAL when the array
   *     has an event, and when it or an array below it is malformed. The array is then as it was.
   *     One call at a time for an array.
   */
  public void exportWithEvent(DeviceStream stream) {
    Events.export(this, stream);
  }

  /**
   * Closes the array when everything is done that is on the stream now. For a consumer whose own
   * kernels still read the buffers: {@link #close} would free the memory under them.
   *
   * <p>The array is closed in every case, and never released early:
   *
   * <ul>
   *   <li>Normally this returns at once. The release callback runs later, on a daemon thread of
   *       this library, never within a callback of a driver. The stream's context is current then,
   *       and the callback may free memory while another thread captures. Up to 64 callbacks may
   *       block without delaying the others. A child that was moved out before is not waited for.
   *   <li>Without a thread or memory, it waits for the stream and releases the array.
   *   <li>If it cannot wait either, it leaks the array, counts it and throws the reason.
   *   <li>It releases an array at once if its device type has no runtime, and the stream is 0 of
   *       such a type too. Memory of the host may be read by a stream of any runtime.
   * </ul>
   *
   * <p>With {@link OnCapture#KEEP} an array whose stream is being captured stays pending until the
   * capture has ended and the stream has passed: for an array that the graph does not read. The
   * stream must live until then.
   *
   * <p>An event whose state the driver does not report does not count for passed, however often it
   * is asked: the array is released when the driver answers, see {@link #pendingReleases}. When the
   * driver says that the device or the context is lost, nothing reads the array any more, and it is
   * released. When the JVM shuts down, what is still pending is left alone.
   *
   * @param stream the stream
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
   * Counts of what {@link #releaseAfter} has taken, as of now.
   *
   * @return the counts
   */
  public static PendingReleases pendingReleases() {
    return Reaper.counts();
  }

  /**
   * Moves the array into a {@link Shared}, which several users may read, with its event.
   *
   * @return the shared struct
   */
  public Shared<DeviceArray> share() {
    return Shared.of(this, DeviceArray::new);
  }

  // --- DLPack

  /**
   * Moves the array into a tensor of DLPack, without a copy.
   *
   * <p>Shape: the array's length, then one dimension for each fixed-size list around the values, or
   * the dimensions of arrow.fixed_shape_tensor. Strides are always set, in elements. A tensor
   * without elements has a NULL pointer. arrow.opaque with the vendor "DLPack" becomes the type
   * that it stands for.
   *
   * <p>Events: the consumer's stream is first ordered behind the array's event, which lives on in
   * the tensor. Without a stream, an array with an event is refused.
   *
   * <p>Nulls are an error. The validity bitmap is read if the host can read it and no work is
   * pending; otherwise a null_count of -1 counts as nulls.
   *
   * <p>Ownership: the deleter of the tensor releases the array, on any thread. After an error the
   * array is still the caller's. The schema stays the caller's.
   *
   * <p>Text: DLPack, "DLManagedTensorVersioned"; Python array API, "__dlpack__".
   *
   * @param schema the type of the array
   * @param options the options
   * @return the tensor
   * @throws FletchingException EINVAL for malformed structs, a child that is released and an event
   *     that is not handled; ENOTSUP for a type or nulls that a tensor cannot have; ERANGE for a
   *     device id that DLPack's 32 bits cannot hold; ENOMEM; with a stream those of {@link
   *     #synchronize()}
   * @throws IllegalStateException if the schema or the array is closed
   */
  public Tensor toDlpack(Schema schema, DlpackExportOptions options) {
    return TensorExport.run(Kind.TENSOR, schema, this, options);
  }

  /**
   * The same with the default options.
   *
   * @param schema the type of the array
   * @return the tensor
   */
  public Tensor toDlpack(Schema schema) {
    return toDlpack(schema, DlpackExportOptions.defaults());
  }

  /**
   * The same as the struct from before DLPack 1.0. It has no flags: EINVAL unless the options say
   * that the memory is writable.
   *
   * @param schema the type of the array
   * @param options the options
   * @return the tensor
   */
  public Tensor toLegacyDlpack(Schema schema, DlpackExportOptions options) {
    return TensorExport.run(Kind.LEGACY_TENSOR, schema, this, options);
  }

  /**
   * Moves the array of a device array on the CPU out.
   *
   * @return the array
   * @throws FletchingException EINVAL for another device type, and for an array with an event,
   *     which an ArrowArray cannot carry; then nothing was moved
   */
  public Array toHost() {
    if (!deviceType().equals(DeviceType.CPU)) {
      throw FletchingException.invalid(
          "array: wrong device type: expected cpu, got " + deviceType());
    }
    if (syncEvent() != 0) {
      throw FletchingException.invalid("array: sync_event not NULL: expected none on cpu");
    }
    Slot host = Slot.take(Kind.ARRAY);
    Slot source = takeSlot("to_host");
    Kind.ARRAY.move(source.address, host.address);
    source.free();
    return new Array(host);
  }
}
