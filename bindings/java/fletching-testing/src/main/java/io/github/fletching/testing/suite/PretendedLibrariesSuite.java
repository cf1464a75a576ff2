// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Releases.assertFails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.sun.jna.Memory;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.FletchingException;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.Counting;
import io.github.fletching.testing.Pretending;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How a library is found, and what becomes of one that is missing or lacks a function. */
@Timeout(120)
public abstract class PretendedLibrariesSuite {
  private static final int ENOENT = 2;
  private static final int ENOMEM = 12;
  private static final int ENOSYS = 38;
  private static final String REASON =
      "/nowhere/library.so: cannot open shared object file: No such file or directory";

  private static DeviceArray array(DeviceType type) {
    Memory handle = new Memory(8);
    handle.setLong(0, 0x1000);
    return Releases.awaited(type, handle);
  }

  private static String errorOf(Runnable operation, int code) {
    FletchingException error = Releases.errorOf(operation);
    assertEquals(code, error.errno());
    return error.getMessage();
  }

  /** One that is loaded is preferred: a handle of one version means nothing to another. */
  @Test
  void aLoadedLibraryIsPreferred() {
    Copy.run(this, "preferLoaded");
  }

  void preferLoaded() {
    Pretending.libraries(Map.of("libamdhip64.so.7", false, "libamdhip64.so.5", true));
    try (DeviceArray array = array(DeviceType.ROCM)) {
      int live = Counting.live();
      array.synchronize();
      assertEquals(live, Counting.live());
      List<String> opened =
          List.of("libamdhip64.so.7 5", "libamdhip64.so.6 5", "libamdhip64.so.5 5");
      assertEquals(opened, Pretending.opened());
      array.synchronize();
      array.isReady();
      assertEquals(opened, Pretending.opened()); // it is found once
    }
  }

  @Test
  void elseTheFirstNameIsLoaded() {
    Copy.run(this, "loadTheFirst");
  }

  void loadTheFirst() {
    Pretending.libraries(Map.of("libamdhip64.so.6", false, "libamdhip64.so", false));
    try (DeviceArray array = array(DeviceType.ROCM)) {
      array.synchronize();
      assertEquals(
          List.of(
              "libamdhip64.so.7 5",
              "libamdhip64.so.6 5",
              "libamdhip64.so.5 5",
              "libamdhip64.so 5",
              "libamdhip64.so.7 1",
              "libamdhip64.so.6 1"),
          Pretending.opened());
    }
  }

  @Test
  void aMissingLibraryIsLookedForAgain() {
    Copy.run(this, "missing");
  }

  void missing() {
    Pretending.libraries(Map.of());
    try (DeviceArray array = array(DeviceType.CUDA)) {
      int live = Counting.live();
      assertEquals(
          "CUDA driver API: cannot load libcuda.so.1, libcuda.so; hint: install it, or add its"
              + " folder to the library search path ("
              + REASON
              + "; "
              + REASON
              + ")",
          errorOf(array::synchronize, ENOENT));
      assertEquals(live, Counting.live());
      Pretending.libraries(Map.of("libcuda.so", false));
      Pretending.replace("cuCtxGetCurrent", PretendedLibrariesSuite::answerOne);
      array.synchronize();
      assertEquals(live, Counting.live());
    }
  }

  /** A context is current. */
  private static long answerOne(long out, long b, long c, long d, long e) {
    new com.sun.jna.Pointer(out).setLong(0, 1);
    return 0;
  }

  @Test
  void missingFunctionFailsOnlyOperationsThatNeedIt() {
    Copy.run(this, "missingFunctions");
  }

  void missingFunctions() {
    Pretending.libraries(Map.of("libOpenCL.so", true));
    List<String> missing =
        List.of("clGetContextInfo", "clFlush", "clWaitForEvents", "clEnqueueMarkerWithWaitList");
    missing.forEach(Pretending::remove);
    DeviceStream stream = DeviceStream.of(DeviceType.OPENCL, 1);
    try (DeviceArray array = array(DeviceType.OPENCL)) {
      assertFalse(array.isReady()); // no answer
      array.waitOn(stream); // the event has no queue to be flushed
      assertEquals(lacks("clWaitForEvents"), errorOf(array::synchronize, ENOSYS));
      DeviceArray other = new Releases().array(DeviceType.OPENCL);
      int live = Counting.live();
      assertEquals(lacks("clFlush"), errorOf(() -> other.exportWithEvent(stream), ENOSYS));
      assertEquals(live, Counting.live());
      assertEquals(0, other.syncEvent());
      other.close();
    }
  }

  private static String lacks(String function) {
    return "OpenCL: libOpenCL.so has no " + function + "; hint: install a newer version";
  }

  /** An operation that could not be undone is not begun. */
  @Test
  void missingWayBackFailsOperation() {
    Copy.run(this, "withoutPop");
    Copy.run(this, "withoutRelease");
  }

  void withoutPop() {
    PretendedCuda driver = new PretendedCuda();
    Pretending.remove("cuCtxPopCurrent_v2");
    try (DeviceArray array = driver.incoming()) {
      assertFails(ENOSYS, array::synchronize, "libcuda.so.1 has no cuCtxPopCurrent_v2");
      assertEquals("", driver.take());
    }
  }

  void withoutRelease() {
    PretendedCuda driver = new PretendedCuda();
    Pretending.remove("cuDevicePrimaryCtxRelease_v2");
    try (DeviceArray array = driver.incoming()) {
      assertFails(ENOSYS, array::synchronize, "has no cuDevicePrimaryCtxRelease_v2");
      assertFalse(driver.take().contains("Retain"));
    }
  }

  @Test
  void aNameNeedsMemory() {
    Copy.run(this, "noMemory");
  }

  void noMemory() {
    Pretending.libraries(Map.of("libOpenCL.so.1", true));
    try (DeviceArray array = array(DeviceType.OPENCL)) {
      int live = Counting.live();
      Counting.failAt(1);
      assertFails(ENOMEM, array::synchronize, "load libOpenCL.so.1: no memory");
      Counting.failAt(2);
      assertFails(ENOMEM, array::synchronize, "load clGetPlatformIDs: no memory");
      Counting.failAt(0);
      assertEquals(live, Counting.live());
      array.synchronize();
    }
  }
}
