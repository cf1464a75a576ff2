// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Releases.assertFails;
import static io.github.fletching.testing.suite.Releases.awaited;
import static io.github.fletching.testing.suite.StandinEventsSuite.onBoth;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.abi.DeviceType;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How often the stand-ins of CUDA and HIP are called, and what their errors say. */
@Timeout(120)
public abstract class StandinCallsSuite {
  private static final int EIO = 5;
  private static final int EBUSY = 16;
  private static final int EINVAL = 22;

  @Test
  void theDeviceIsSetOnlyWhereItIsAnother() {
    Gpu hip = Gpu.hip("standin");
    Gpu.Gated gated = hip.new Gated();
    hip.recordEvent(gated.event, gated.producer);
    DeviceArray incoming = awaited(hip.type, gated.event);
    long calls = hip.calls("hipSetDevice");
    incoming.waitOn(gated.ofConsumer());
    assertEquals(calls, hip.calls("hipSetDevice"));
    hip.openDevice(1);
    calls = hip.calls("hipSetDevice");
    incoming.waitOn(gated.ofConsumer());
    assertEquals(calls + 2, hip.calls("hipSetDevice"));
    hip.closeDevice(1);
    incoming.close();
    gated.end();
  }

  @Test
  void anErrorHasNameNumberAndText() {
    onBoth(
        (gpu, gated) -> {
          gpu.recordEvent(gated.event, gated.producer);
          DeviceArray incoming = awaited(gpu.type, gated.event);
          gpu.setFault(gpu.synchronize + ":1:" + gpu.error);
          assertFails(EIO, incoming::synchronize, gpu.error + " (719): ");
          gpu.resetFaults();
          incoming.close();
        });
  }

  @Test
  void aReleaseIsNotCaptured() {
    onBoth(
        (gpu, gated) -> {
          DeviceArray array = new Releases().array(gpu.type);
          gpu.beginCapture(gated.consumer);
          assertFails(
              EBUSY,
              () -> array.releaseAfter(gated.ofConsumer()),
              "release_after: ",
              "hint: keep the array until the graph is destroyed");
          DeviceArray exported = new Releases().array(gpu.type);
          assertFails(
              EBUSY,
              () -> exported.exportWithEvent(gated.ofConsumer()),
              "export_with_event: ",
              "hint: export before the capture begins");
          gpu.destroyGraph(gpu.endCapture(gated.consumer));
          exported.close();
        });
  }

  /** The first page is never mapped. */
  @Test
  void aSmallNumberIsNotTheAddressOfAnEvent() {
    onBoth(
        (gpu, gated) -> {
          for (long address : List.of(8L, 4088L)) {
            try (DeviceArray array = new Releases().array(gpu.type, 0, address)) {
              assertFails(EINVAL, array::synchronize, "aligned address");
            }
          }
        });
  }

  @Test
  void aStreamOfAnotherRuntimeIsRefused() {
    onBoth(
        (gpu, gated) -> {
          DeviceType other = gpu.isCuda ? DeviceType.ROCM : DeviceType.CUDA;
          DeviceStream stream = DeviceStream.of(other, gated.consumer);
          String text =
              ": stream of another runtime: expected one of " + gpu.type + ", got one of ";
          Releases releases = new Releases();
          try (DeviceArray incoming = awaited(gpu.type, gated.event);
              DeviceArray array = releases.array(gpu.type)) {
            assertFails(EINVAL, () -> incoming.waitOn(stream), "wait_on" + text + other);
            assertFails(
                EINVAL, () -> array.exportWithEvent(stream), "export_with_event" + text + other);
            assertEquals(0, array.syncEvent());
            assertFails(EINVAL, () -> array.releaseAfter(stream), "release_after" + text + other);
          }
          releases.assertCount(0); // it is leaked
        });
  }
}
