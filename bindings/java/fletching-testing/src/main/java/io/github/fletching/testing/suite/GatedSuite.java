// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Releases.assertFails;
import static io.github.fletching.testing.suite.Releases.errorOf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.FletchingException;
import io.github.fletching.VulkanContext;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.GatedProducer;
import io.github.fletching.testing.GatedProducer.Queue;
import io.github.fletching.testing.NativeLibraries;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Arrays of the reference producer, behind its gate, in processes of their own: CUDA and ROCm on
 * the stand-ins, OpenCL and Vulkan on the first device of the machine.
 */
public abstract class GatedSuite {
  private static final int ENOENT = 2;
  private static final int EIO = 5;
  private static final int EINVAL = 22;
  private static final int ENOTSUP = 95;
  private static final String NO_DEVICE = "there is no such device";

  private void onGate(String method) {
    assumeFalse(Child.run(this, method).contains(NO_DEVICE), NO_DEVICE);
  }

  private static Gate gate(String backend) {
    if (Gate.isAbsent(backend)) {
      System.out.println(NO_DEVICE);
      System.exit(0);
    }
    return new Gate(backend);
  }

  private static void waitBehindTheGate(Gate gate) {
    assertFalse(gate.array.isReady());
    gate.read();
    gate.verify(Gate.OLD); // the negative control: without a wait the old data is read

    gate.array.waitOn(gate.stream()); // it has returned, and the gate is shut
    gate.read();
    assertFalse(gate.isIdle());
    assertFalse(gate.array.isReady());
    gate.open();
    gate.verify(Gate.NEW);
    gate.array.synchronize();
    assertTrue(gate.array.isReady());
    gate.end();
  }

  /** A consumer's queue is blocked behind the gate: the array has to live until that is open. */
  private static void outliveTheWork(String backend) {
    Gate gate = gate(backend);
    DeviceType type = gate.array.deviceType();
    gate.array.waitOn(gate.stream());
    gate.read();
    long live = Gate.liveArrays();
    gate.array.releaseAfter(gate.stream());
    // One that need not wait overtakes it: the reaper has looked at both by then.
    try (Queue other = new Queue(backend)) {
      Releases free = new Releases();
      free.array(type).releaseAfter(DeviceStream.of(type, other.handle()));
      free.waitFor(1);
    }
    assertFalse(gate.isIdle());
    assertEquals(live, Gate.liveArrays());
    assertEquals(1, DeviceArray.pendingReleases().pending());
    gate.open();
    gate.verify(Gate.NEW); // its memory is still valid, or the stand-in breaks the context
    gate.end();
  }

  @Test
  void eventsOfCudaAndRocm() {
    onGate("cudaAndRocmBehindTheGate");
  }

  void cudaAndRocmBehindTheGate() {
    Gpu.cuda("standin");
    Gpu.hip("standin");
    for (String backend : List.of("cuda", "cuda_managed", "rocm")) {
      waitBehindTheGate(gate(backend));
      outliveTheWork(backend);
    }
  }

  @Test
  void eventsOfOpencl() {
    onGate("openclBehindTheGate");
  }

  void openclBehindTheGate() {
    waitBehindTheGate(gate("opencl"));
    outliveTheWork("opencl");
    Gate gate = gate("opencl");
    assertFails(
        EINVAL,
        () -> gate.array.waitOn(DeviceStream.of(DeviceType.OPENCL, 0)),
        "stream is NULL: expected a cl_command_queue, because OpenCL has no default queue");
    assertFails(
        EINVAL,
        () -> gate.array.waitOn(DeviceStream.of(DeviceType.CUDA, 0)),
        "expected one of opencl, got one of cuda");

    // A queue on the same device, of a context of its own.
    NativeLibrary cl = NativeLibrary.getInstance("libOpenCL.so.1");
    Memory device = new Memory(8);
    long queue = gate.stream().handle();
    call(cl, "clGetCommandQueueInfo", queue, 0x1091, 8, Pointer.nativeValue(device), 0);
    long context = call(cl, "clCreateContext", 0, 1, Pointer.nativeValue(device), 0, 0, 0);
    long other = call(cl, "clCreateCommandQueue", context, device.getLong(0), 0, 0);
    assertFails(
        EINVAL,
        () -> gate.array.waitOn(DeviceStream.of(DeviceType.OPENCL, other)),
        "wait_on: cl_context of the queue differs from the event's");
    call(cl, "clReleaseCommandQueue", other);
    call(cl, "clReleaseContext", context);
    gate.end();
  }

  private static long call(NativeLibrary library, String name, long... arguments) {
    return library.getFunction(name).invokeLong(Gpu.boxed(arguments));
  }

  private static long call(NativeLibrary library, String name, String text) {
    return library.getFunction(name).invokeLong(new Object[] {text});
  }

  /**
   * Every call of OpenCL that an operation makes fails once, behind an interposer (tests/faults).
   */
  @Test
  void everyFailureOfOpenclIsAnError() {
    onGate("failOpencl");
  }

  void failOpencl() {
    NativeLibrary cl = NativeLibraries.open("interposers/libOpenCL.so.1");
    Gate gate = gate("opencl");
    gate.open();
    gate.array.synchronize();
    DeviceStream stream = gate.stream();
    List<Runnable> operations =
        List.of(
            gate.array::synchronize,
            gate.array::isReady,
            () -> gate.array.waitOn(stream),
            () -> Releases.export(stream),
            () -> Releases.releaseAfter(stream));
    List<String> failed = new ArrayList<>(); // the functions, with the operations that report them
    for (String function :
        List.of(
            "clWaitForEvents",
            "clGetEventInfo",
            "clGetCommandQueueInfo",
            "clFlush",
            "clEnqueueBarrierWithWaitList",
            "clEnqueueMarkerWithWaitList",
            "clReleaseEvent")) {
      for (int i = 0; i < operations.size(); i++) {
        long alive = call(cl, "FletchingInterposerLeaks", 0);
        long calls = call(cl, "FletchingInterposerCalls", function);
        call(cl, "FletchingInterposerSetFault", function + ":1:CL_OUT_OF_RESOURCES");
        FletchingException error = errorOf(operations.get(i));
        boolean hasFailed = call(cl, "FletchingInterposerCalls", function) > calls;
        call(cl, "FletchingInterposerResetFaults");
        assertEquals(alive, call(cl, "FletchingInterposerLeaks", 0), function + i + " leaks");
        if (error != null) {
          String text = error.getMessage();
          failed.add(function + i);
          assertEquals(EIO, error.errno(), text);
          assertTrue(text.contains(function + " failed with CL_OUT_OF_RESOURCES (-5)"), text);
        } else {
          assertTrue(!hasFailed || i >= 3, function + i + " is lost");
        }
      }
    }
    assertEquals( // a release reports nothing
        List.of(
            "clWaitForEvents0",
            "clGetEventInfo1",
            "clGetEventInfo2",
            "clGetCommandQueueInfo2",
            "clFlush2",
            "clFlush3",
            "clEnqueueBarrierWithWaitList2",
            "clEnqueueMarkerWithWaitList3"),
        failed);
    gate.end();
  }

  @Test
  void eventsOfVulkan() {
    onGate("vulkanBehindTheGate");
  }

  void vulkanBehindTheGate() {
    Gate gate = gate("vulkan");
    VulkanContext context = GatedProducer.vulkan();
    VulkanContext withoutQueue = context.onQueue(0, 0, 0);
    assertFails(ENOTSUP, gate.array::synchronize, "VulkanContext");
    assertFails(ENOTSUP, () -> gate.array.waitOn(gate.stream()), "VulkanContext");
    // Without libfletching in the process, waits are refused.
    assertFails(
        ENOENT,
        () -> gate.array.isReady(context),
        "Vulkan events through libfletching: cannot load libfletching.so.0.1, libfletching.so; ");
    NativeLibraries.open("libfletching.so.0.1");

    assertFalse(gate.array.isReady(context));
    long commandBuffer = gate.stream().handle();
    assertFails(ENOTSUP, () -> gate.array.waitOn(withoutQueue, commandBuffer));
    gate.array.waitOn(context, gate.stream().handle());
    gate.read();
    assertFalse(gate.isIdle());
    gate.open();
    gate.verify(Gate.NEW);
    gate.array.synchronize(context);
    assertTrue(gate.array.isReady(context));
    gate.end();
  }
}
