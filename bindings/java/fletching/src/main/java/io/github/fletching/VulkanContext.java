// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

import io.github.fletching.abi.DeviceType;
import java.lang.ref.Reference;

/**
 * What a wait on a VkEvent needs: the interface does not hand over what the event belongs to, so
 * the producer has to pass it separately. The handles live as long as this is used, and as long as
 * a command buffer with the wait is pending. Immutable.
 *
 * <p>The operations call libfletching, which is loaded at run time: see {@link Validation}.
 */
public final class VulkanContext {
  private static final int TEXT = 1024;
  private static final Library LIBRARY = Library.fletching("Vulkan events through libfletching");
  private static final Symbol SYNCHRONIZE =
      LIBRARY.symbol("FletchingDeviceArraySynchronizeVulkan", "iaaa");
  private static final Symbol WAIT_ON = LIBRARY.symbol("FletchingDeviceArrayWaitOnVulkan", "iaaaa");
  private static final Symbol READY = LIBRARY.symbol("FletchingDeviceArrayReadyVulkan", "iaaaa");

  private final long device;
  private final long getDeviceProcAddr;
  private final long producerQueue;
  private final long queue;
  private final int setStages;

  private VulkanContext(
      long device, long getDeviceProcAddr, long producerQueue, long queue, int setStages) {
    this.device = device;
    this.getDeviceProcAddr = getDeviceProcAddr;
    this.producerQueue = producerQueue;
    this.queue = queue;
    this.setStages = setStages;
  }

  /**
   * The VkDevice with which the producer created the event, and the vkGetDeviceProcAddr of that
   * device, 0 for the functions of the loader.
   *
   * @param device the handle of the VkDevice
   * @param getDeviceProcAddr the address of vkGetDeviceProcAddr
   * @return the stream
   */
  public static VulkanContext of(long device, long getDeviceProcAddr) {
    return new VulkanContext(device, getDeviceProcAddr, 0, 0, 0);
  }

  /**
   * The same for a wait in a command buffer: the VkQueue on which the producer sets the event, the
   * one to which the caller submits, and the VkPipelineStageFlags with which the producer sets the
   * event, 0 for all commands.
   *
   * @param producerQueue the queue of the producer
   * @param queue the queue
   * @param setStages the stages that set the event
   * @return this stream
   */
  public VulkanContext onQueue(long producerQueue, long queue, int setStages) {
    return new VulkanContext(device, getDeviceProcAddr, producerQueue, queue, setStages);
  }

  void synchronize(DeviceArray array) {
    if (hasEvent(array, "synchronize")) {
      call(SYNCHRONIZE, array, 0);
    }
  }

  void waitOn(DeviceArray array, long commandBuffer) {
    if (!hasEvent(array, "wait_on")) {
      return;
    }
    if (commandBuffer == 0) {
      throw FletchingException.invalid(
          "wait_on: command buffer is NULL: expected a VkCommandBuffer");
    }
    call(WAIT_ON, array, commandBuffer);
  }

  boolean isReady(DeviceArray array) {
    return !hasEvent(array, "ready") || call(READY, array, 0);
  }

  private static boolean hasEvent(DeviceArray array, String operation) {
    SyncEvent event = Events.of(array, operation);
    if (event != null && !event.deviceType().equals(DeviceType.VULKAN)) {
      throw FletchingException.invalid(
          "VulkanContext: expected an event of Vulkan, got one of " + event.deviceType());
    }
    return event != null;
  }

  /** Fills struct FletchingVulkanWaitContext, with room for the answer and a text behind it. */
  private boolean call(Symbol function, DeviceArray array, long commandBuffer) {
    LIBRARY.load();
    long context = Native.allocate(6L * POINTER + TEXT, function.name);
    try {
      long ready = context + 5L * POINTER;
      long text = ready + POINTER;
      C.putAddress(context, device);
      C.putAddress(context + POINTER, producerQueue);
      C.putAddress(context + 2L * POINTER, queue);
      C.putInt(context + 3L * POINTER, setStages);
      C.putAddress(context + 4L * POINTER, getDeviceProcAddr);
      long struct = array.open("read");
      long code =
          function == SYNCHRONIZE
              ? function.call(struct, context, text)
              : function.call(struct, context, function == READY ? ready : commandBuffer, text);
      if ((int) code != 0) {
        throw FletchingException.foreign((int) code, Native.printable(text));
      }
      return C.getInt(ready) != 0;
    } finally {
      C.free(context);
      Reference.reachabilityFence(array);
    }
  }
}
