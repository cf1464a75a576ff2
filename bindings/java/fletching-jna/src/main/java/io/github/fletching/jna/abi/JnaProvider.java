// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import io.github.fletching.abi.engine.Engine;
import io.github.fletching.abi.engine.EngineProvider;

/** For {@link java.util.ServiceLoader} alone. */
@SuppressWarnings("exports") // only ServiceLoader makes one
public final class JnaProvider implements EngineProvider {
  /** For {@link java.util.ServiceLoader} alone. */
  public JnaProvider() {}

  @Override
  public String name() {
    return "jna";
  }

  @Override
  public int rank() {
    return 1;
  }

  @Override
  public Engine open() {
    return new JnaEngine();
  }
}
