// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi.engine;

/** Service interface of an engine, loaded with {@link java.util.ServiceLoader}. */
public interface EngineProvider {
  /**
   * The engine name, as in the system property {@link Engines#PROPERTY}.
   *
   * @return the name, such as {@code ffm}
   */
  String name();

  /**
   * The priority of the engine: {@link Engines#open} tries the highest rank first.
   *
   * @return the rank
   */
  int rank();

  /**
   * Opens the engine.
   *
   * @return the engine
   * @throws UnsupportedOperationException with the reason if this JVM cannot run the engine
   */
  Engine open();
}
