// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

import io.github.fletching.abi.DeviceType;
import java.lang.ref.Reference;

/**
 * The handles needed to wait on a VkEvent. The C interface does not transfer them, so the producer
 * must pass them separately. They must be valid while this object is used, and while a command
 * buffer with the wait is pending. Immutable.
 *
 * <p>The operations call libfletching, which is loaded at run time: see {@link Validation}.
 */
public final class VulkanContext {
  private static final int TEXT = 1024;
  static final Library LIBRARY = Library.fletching("Vulkan events through libfletching");
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
   * Creates a context for the VkDevice with which the producer created the event.
   *
   * @param device the VkDevice
   * @param getDeviceProcAddr the address of that device's vkGetDeviceProcAddr; 0 for the functions
   *     of the loader
   * @return the context
   */
  public static VulkanContext of(long device, long getDeviceProcAddr) {
    return new VulkanContext(device, getDeviceProcAddr, 0, 0, 0);
  }

  /**
   * Copies the context with the queues for a wait in a command buffer.
   *
   * @param producerQueue the VkQueue on which the producer sets the event
   * @param queue the VkQueue to which the caller submits the command buffer
   * @param setStages the VkPipelineStageFlags with which the producer sets the event; 0 for all
   *     commands
   * @return the new context
   */
  public VulkanContext onQueue(long producerQueue, long queue, int setStages) {
    return new VulkanContext(device, getDeviceProcAddr, producerQueue, queue, setStages);
  }

  void synchronize(DeviceArray array) {
    if (hasEvent(array, "synchronize")) {
      call("synchronize", SYNCHRONIZE, array, 0);
    }
  }

  void waitOn(DeviceArray array, long commandBuffer) {
    if (!hasEvent(array, "waitOn")) {
      return;
    }
    if (commandBuffer == 0) {
      throw FletchingException.invalid(
          "waitOn: command buffer is NULL: expected a VkCommandBuffer that is being recorded, because"
              + " a VkQueue cannot wait for a VkEvent");
    }
    call("waitOn", WAIT_ON, array, commandBuffer);
  }

  boolean isReady(DeviceArray array) {
    return !hasEvent(array, "isReady") || call("isReady", READY, array, 0);
  }

  private static boolean hasEvent(DeviceArray array, String operation) {
    SyncEvent event = Events.of(array, operation);
    if (event != null && !event.deviceType().equals(DeviceType.VULKAN)) {
      throw FletchingException.invalid(
          operation + ": expected an event of Vulkan, got one of " + event.deviceType());
    }
    return event != null;
  }

  private boolean call(String operation, Symbol function, DeviceArray array, long commandBuffer) {
    return Events.named(operation, () -> run(operation, function, array, commandBuffer));
  }

  /** Fills struct FletchingVulkanWaitContext, followed by the result and the error message. */
  private boolean run(String operation, Symbol function, DeviceArray array, long commandBuffer) {
    LIBRARY.load();
    long context = Native.allocate(6L * POINTER + TEXT, operation);
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
