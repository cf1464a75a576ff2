// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Releases.assertError;
import static io.github.fletching.testing.suite.Releases.assertFails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.sun.jna.Memory;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.CountingEngine;
import io.github.fletching.testing.FakeLibraryEngine;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The search for a library, and the errors for a missing library or function. */
@OnLibraryCopy
@Timeout(120)
class FakeLibrariesTest {
  private static final int ENOMEM = 12;
  private static final int ENOSYS = 38;

  private static DeviceArray array(DeviceType type) {
    Memory handle = new Memory(8);
    handle.setLong(0, 0x1000);
    return Releases.awaited(type, handle);
  }

  /** A loaded library is preferred, because handles are valid in one library version only. */
  @Test
  void loadedLibraryIsPreferred() {
    FakeLibraryEngine.libraries(Map.of("libamdhip64.so.7", false, "libamdhip64.so.5", true));
    assertOpens("libamdhip64.so.7 5", "libamdhip64.so.6 5", "libamdhip64.so.5 5");
  }

  @Test
  void firstLibraryIsLoaded() {
    FakeLibraryEngine.libraries(Map.of("libamdhip64.so.6", false, "libamdhip64.so", false));
    assertOpens(
        "libamdhip64.so.7 5",
        "libamdhip64.so.6 5",
        "libamdhip64.so.5 5",
        "libamdhip64.so 5",
        "libamdhip64.so.7 1",
        "libamdhip64.so.6 1");
  }

  private static void assertOpens(String... expected) {
    try (DeviceArray array = array(DeviceType.ROCM)) {
      int live = CountingEngine.live();
      array.synchronize();
      array.isReady(); // the library is looked up once
      assertEquals(List.of(expected), FakeLibraryEngine.opened());
      assertEquals(live, CountingEngine.live());
    }
  }

  @Test
  void missingFunctionFailsOnlyItsOperations() {
    FakeLibraryEngine.libraries(Map.of("libOpenCL.so", true));
    List<String> missing =
        List.of("clGetContextInfo", "clFlush", "clWaitForEvents", "clEnqueueMarkerWithWaitList");
    missing.forEach(FakeLibraryEngine::remove);
    DeviceStream stream = DeviceStream.of(DeviceType.OPENCL, 1);
    try (DeviceArray array = array(DeviceType.OPENCL)) {
      assertFalse(array.isReady()); // the query returns no state
      array.waitOn(stream); // the event has no queue to flush
      assertLacks("synchronize", "clWaitForEvents", array::synchronize);
      DeviceArray other = new Releases().array(DeviceType.OPENCL);
      int live = CountingEngine.live();
      assertLacks("exportWithEvent", "clFlush", () -> other.exportWithEvent(stream));
      assertEquals(live, CountingEngine.live());
      assertEquals(0, other.syncEvent());
      other.close();
    }
  }

  private static void assertLacks(String name, String function, Runnable operation) {
    String text =
        name + ": OpenCL: libOpenCL.so has no " + function + "; hint: install a newer version";
    assertError(ENOSYS, text, operation);
  }

  @Test
  void synchronizeWithoutPopFails() {
    failWithout("cuCtxPopCurrent_v2");
  }

  @Test
  void synchronizeWithoutReleaseFails() {
    failWithout("cuDevicePrimaryCtxRelease_v2");
  }

  /** An operation that cannot be undone must not start. */
  private static void failWithout(String function) {
    FakeLibraryEngine.remove(function);
    Gpu gpu = Gpu.cuda("standin");
    try (DeviceArray array = array(DeviceType.CUDA)) {
      gpu.openDevice(0); // the primary context is active
      long before = gpu.calls("cuDevicePrimaryCtxRetain");
      Releases.onThread(
          () -> assertFails(ENOSYS, array::synchronize, "libcuda.so.1 has no " + function));
      assertEquals(before, gpu.calls("cuDevicePrimaryCtxRetain"));
      gpu.closeDevice(0);
    }
  }

  @Test
  void loadWithoutMemoryReturnsEnomem() {
    FakeLibraryEngine.libraries(Map.of("libOpenCL.so.1", true));
    try (DeviceArray array = array(DeviceType.OPENCL)) {
      int live = CountingEngine.live();
      CountingEngine.failAt(1);
      assertFails(ENOMEM, array::synchronize, "load libOpenCL.so.1: no memory");
      CountingEngine.failAt(2);
      assertFails(ENOMEM, array::synchronize, "load clGetPlatformIDs: no memory");
      CountingEngine.failAt(0);
      assertEquals(live, CountingEngine.live());
      array.synchronize();
    }
  }
}
