// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.ENOENT;
import static io.github.fletching.abi.Errno.ENOSYS;
import static io.github.fletching.abi.Errno.ENOTSUP;
import static io.github.fletching.testing.suite.Releases.assertFails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.OnCapture;
import io.github.fletching.abi.DeviceType;
import org.junit.jupiter.api.Test;

/** Libraries that are missing or lack functions, each in a separate process. */
class StandinLibrariesTest {
  private static final String DRIVER = "this machine has a driver";

  /** Expects every operation to fail with this error, without using the event's handle. */
  private static void assertAllFail(DeviceType type, int code, String... parts) {
    Memory handle = new Memory(8);
    handle.setLong(0, 0x1000);
    DeviceStream stream = DeviceStream.of(type, 0);
    Releases releases = new Releases();
    try (DeviceArray array = Releases.awaited(type, handle);
        DeviceArray other = releases.array(type)) {
      assertFails(code, array::synchronize, parts);
      assertFails(code, () -> array.waitOn(stream), parts);
      assertFails(code, array::isReady, parts);
      assertFails(code, () -> other.exportWithEvent(stream), parts);
      assertFails(code, () -> other.releaseAfter(stream), parts);
    }
    releases.assertCount(0); // the array leaks
    assertEquals(1, DeviceArray.pendingReleases().leaked());
  }

  private static boolean exists(String library) {
    try {
      return NativeLibrary.getInstance(library) != null;
    } catch (UnsatisfiedLinkError e) {
      return false;
    }
  }

  @Test
  void missingLibraryErrorNamesLibrary() {
    assumeFalse(Child.run(this, "missingLibraries").contains(DRIVER), DRIVER);
  }

  void missingLibraries() {
    if (exists("libcuda.so.1")) {
      System.out.println(DRIVER);
      return;
    }
    String cuda = "CUDA driver API: cannot load libcuda.so.1, libcuda.so; hint: install it, or ";
    assertAllFail(DeviceType.CUDA, ENOENT, cuda, "(libcuda.so.1: cannot open shared object file");
    // A missing library is looked up again.
    Gpu gpu = Gpu.cuda("standin");
    round(gpu);
  }

  @Test
  void missingSymbolErrorNamesSymbol() {
    Child.run(this, "missingSymbols");
  }

  void missingSymbols() {
    Gpu cuda = Gpu.cuda("standin-broken");
    assertOnlyWaitFails(cuda, "CUDA driver API: libcuda.so.1 has no cuStreamWaitEvent; hint");
    Gpu hip = Gpu.hip("standin-broken");
    assertOnlyWaitFails(hip, "libamdhip64.so.7 has no hipStreamWaitEvent; hint: install a");
  }

  private static void assertOnlyWaitFails(Gpu gpu, String part) {
    gpu.openDevice(0);
    long stream = gpu.makeStream();
    Releases releases = new Releases();
    DeviceArray array = releases.array(gpu.type);
    array.exportWithEvent(gpu.stream(stream));
    assertFails(ENOSYS, () -> array.waitOn(gpu.stream(stream)), part);
    array.synchronize();
    assertTrue(array.isReady());
    array.releaseAfter(gpu.stream(stream));
    releases.waitFor(1);
    gpu.settleReleases();
    gpu.destroyStream(stream);
    gpu.closeDevice(0);
  }

  private static void round(Gpu gpu) {
    Gpu.Gated gated = gpu.new Gated();
    try (DeviceArray array = new Releases().array(gpu.type)) {
      array.exportWithEvent(gated.ofProducer());
      array.waitOn(gated.ofConsumer());
      array.waitOn(gated.ofConsumer().onCapture(OnCapture.EXTERNAL)); // no capture is active
      array.synchronize();
      assertTrue(array.isReady());
    }
    Releases releases = new Releases();
    releases.array(gpu.type).releaseAfter(gated.ofConsumer());
    releases.waitFor(1);
    gated.end();
  }

  /** The library has only the functions that the operations call. */
  @Test
  void errorTextFunctionsAreOptional() {
    Child.run(this, "missingErrorTextFunctions");
  }

  void missingErrorTextFunctions() {
    round(Gpu.cuda("standin-nameless"));
  }

  @Test
  void oldLibraryLacksOnlyExternalEvents() {
    Child.run(this, "old");
  }

  void old() {
    Gpu gpu = Gpu.cuda("standin-old");
    round(gpu);
    round(Gpu.hip("standin-old"));
    StandinContextsTest.exportFromADestroyedContext(gpu, false);
    long context = gpu.get("cuCtxCreate_v4", 0, 0, 0); // without an ID the context counts as alive
    StandinContextsTest.releaseOnAnotherThread(gpu);
    gpu.ok("cuCtxDestroy_v2", context);

    Gpu.Gated gated = gpu.new Gated();
    DeviceArray array = new Releases().array(gpu.type);
    gpu.beginCapture(gated.producer);
    DeviceStream external = gated.ofProducer().onCapture(OnCapture.EXTERNAL);
    assertFails(
        ENOTSUP, () -> array.exportWithEvent(external), "cuEventRecordWithFlags", "CUDA 11.1");
    assertEquals(0, array.syncEvent());
    gpu.destroyGraph(gpu.endCapture(gated.producer));
    array.close();
    gated.end();
  }
}
