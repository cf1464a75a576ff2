// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import io.github.fletching.abi.engine.Engine;
import io.github.fletching.abi.engine.EngineProvider;

/** Instantiated only by {@link java.util.ServiceLoader}. */
@SuppressWarnings("exports") // only ServiceLoader creates an instance
public final class JnaProvider implements EngineProvider {
  /** Called only by {@link java.util.ServiceLoader}. */
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
