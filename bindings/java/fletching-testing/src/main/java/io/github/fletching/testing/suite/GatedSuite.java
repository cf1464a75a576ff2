// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Releases.assertFails;
import static io.github.fletching.testing.suite.Releases.errorOf;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import com.sun.jna.NativeLibrary;
import io.github.fletching.DeviceStream;
import io.github.fletching.FletchingException;
import io.github.fletching.VulkanContext;
import io.github.fletching.testing.GatedProducer;
import io.github.fletching.testing.NativeLibraries;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Arrays of the reference producer behind its gate, in processes of their own: what the group
 * "events" of ConformanceSuite does not play.
 */
public abstract class GatedSuite {
  private static final int ENOENT = 2;
  private static final int EIO = 5;
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
