// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm;

import io.github.fletching.abi.engine.Engine;
import io.github.fletching.abi.engine.EngineProvider;

/** Compiled for Java 11, so that an older JVM with both engines on its path uses the other one. */
public final class FfmProvider implements EngineProvider {
  /** Called only by {@link java.util.ServiceLoader}. */
  public FfmProvider() {}

  @Override
  public String name() {
    return "ffm";
  }

  @Override
  public int rank() {
    return 2;
  }

  @Override
  public Engine open() {
    return open(Runtime.version().feature());
  }

  static Engine open(int version) {
    if (version < 22) {
      throw new UnsupportedOperationException("expected Java 22 or later, got " + version);
    }
    try {
      Class<?> engine = Class.forName("io.github.fletching.ffm.FfmEngine");
      return (Engine) engine.getDeclaredConstructor().newInstance();
    } catch (ReflectiveOperationException e) {
      throw new UnsupportedOperationException(String.valueOf(e.getCause()), e);
    }
  }
}
