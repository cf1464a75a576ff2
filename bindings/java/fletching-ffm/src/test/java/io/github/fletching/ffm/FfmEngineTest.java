// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.fletching.EngineSuite;
import org.junit.jupiter.api.Test;

class FfmEngineTest extends EngineSuite {
  @Test
  void theProviderOpensTheEngine() {
    FfmProvider provider = new FfmProvider();
    assertEquals("ffm", provider.name());
    assertEquals(2, provider.rank()); // above JNA's
    assertEquals(8, provider.open().pointerSize());
  }

  @Test
  void anOlderJavaIsRefused() {
    assertEquals(8, FfmProvider.open(22).pointerSize());
    assertEquals(
        "expected Java 22 or later, got 21",
        assertThrows(UnsupportedOperationException.class, () -> FfmProvider.open(21)).getMessage());
  }

  @Test
  void aSignatureFitsTheArguments() {
    FfmEngine engine = new FfmEngine();
    long abs = engine.symbol(0, "labs");
    assertThrows(IllegalArgumentException.class, () -> engine.call("ll", abs));
    assertThrows(IllegalArgumentException.class, () -> engine.call("lx", abs, 1));
  }
}
