// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.ArrayRules.assertInvalid;
import static io.github.fletching.testing.suite.Raw.assertClosed;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.fletching.DeviceArrayStream;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.suite.Script.Flavor;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The rules about the device types in a foreign stream. */
public abstract class DeviceTypeRules {
  /** Reads a batch on a device type from a stream on another; returns the rules of the warnings. */
  private static List<String> readOn(int promised, int found, boolean strict) {
    Script script = new Script(Flavor.DEVICE, 1);
    script.promised = promised;
    script.found = found;
    List<String> rules = new ArrayList<>();
    try (DeviceArrayStream stream = (DeviceArrayStream) script.open()) {
      stream.onWarning(warning -> rules.add(warning.rule()));
      (strict ? stream.strict() : stream).next().close();
    } finally {
      assertClosed(script.foreign.log, "batch");
      script.assertEnded();
    }
    return rules;
  }

  private static final int CPU = DeviceType.CPU.value();
  private static final int CUDA = DeviceType.CUDA.value();
  private static final int CUDA_HOST = DeviceType.CUDA_HOST.value();
  private static final int MANAGED = DeviceType.CUDA_MANAGED.value();
  private static final int VPI = DeviceType.VPI.value();

  @Test
  void ruleDeviceStreamOneDeviceType() {
    assertEquals(List.of(), readOn(CUDA, CUDA, true));
    assertEquals(List.of("device-stream.one-device-type"), readOn(CUDA, MANAGED, false));
    assertInvalid(
        "batch: device_type differs from the stream's: expected cuda, got cuda_managed (rule"
            + " device-stream.one-device-type)",
        () -> readOn(CUDA, MANAGED, true));
  }

  @Test
  void ruleDeviceStreamResultAccessible() {
    for (int[] pair : new int[][] {{CPU, CUDA_HOST}, {CPU, MANAGED}, {9999, 9999}}) {
      readOn(pair[0], pair[1], false);
    }
    for (int[] pair :
        new int[][] {
          {CPU, CUDA}, {CUDA, CPU}, {MANAGED, CUDA}, {VPI, CPU}, {CUDA, 9999}, {9999, CPU}
        }) {
      assertInvalid(
          "batch: device_type differs from the stream's: expected "
              + DeviceType.of(pair[0])
              + ", got "
              + DeviceType.of(pair[1])
              + ", memory that the stream's devices may not access (rule"
              + " device-stream-result.accessible)",
          () -> readOn(pair[0], pair[1], false));
    }
  }
}
