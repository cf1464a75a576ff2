// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.fletching.EngineSuite;
import io.github.fletching.abi.engine.Engine;
import io.github.fletching.jna.abi.JnaProvider;
import org.junit.jupiter.api.Test;

class JnaEngineTest extends EngineSuite {
  @Test
  void providerOpensEngine() {
    JnaProvider provider = new JnaProvider();
    assertEquals("jna", provider.name());
    assertEquals(1, provider.rank()); // lower than java.lang.foreign's
    Engine engine = provider.open();
    assertEquals(8, engine.pointerSize());
    for (String signature : new String[] {"xl", "lx"}) {
      assertThrows(IllegalArgumentException.class, () -> engine.call(signature, 0, 1));
      assertThrows(
          IllegalArgumentException.class,
          () -> engine.stub("name", signature, 0, (a, b, c, d) -> 0));
    }
  }
}
