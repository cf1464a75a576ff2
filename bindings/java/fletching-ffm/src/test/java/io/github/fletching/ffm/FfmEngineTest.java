// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.fletching.EngineSuite;
import io.github.fletching.testing.suite.Child;
import io.github.fletching.testing.suite.NoEngine;
import org.junit.jupiter.api.Test;

class FfmEngineTest extends EngineSuite {
  @Test
  void providerOpensEngine() {
    FfmProvider provider = new FfmProvider();
    assertEquals("ffm", provider.name());
    assertEquals(2, provider.rank()); // higher than JNA's
    assertEquals(8, provider.open().pointerSize());
  }

  @Test
  void openRejectsJavaBefore22() {
    assertEquals(8, FfmProvider.open(22).pointerSize());
    assertEquals(
        "expected Java 22 or later, got 21",
        assertThrows(UnsupportedOperationException.class, () -> FfmProvider.open(21)).getMessage());
  }

  @Test
  void deniedNativeAccessErrorNamesOption() {
    assumeTrue(Runtime.version().feature() >= 24, "needs --illegal-native-access=deny of Java 24");
    String output =
        Child.runMain(
            NoEngine.class, "--illegal-native-access=deny", "-Dio.github.fletching.engine=ffm");
    assertTrue(output.contains("ffm failed: Illegal native access from"), output);
    assertTrue(output.contains("hint: start java with --enable-native-access="), output);
    assertTrue(output.contains("caused by java.lang.ExceptionInInitializerError"), output);
  }

  @Test
  void callRejectsMismatchedSignature() {
    FfmEngine engine = new FfmEngine();
    long abs = engine.symbol(0, "labs");
    assertThrows(IllegalArgumentException.class, () -> engine.call("ll", abs));
    assertThrows(IllegalArgumentException.class, () -> engine.call("lx", abs, 1));
  }
}
