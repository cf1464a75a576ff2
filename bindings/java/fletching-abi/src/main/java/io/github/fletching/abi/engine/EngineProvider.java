// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi.engine;

/** An engine that is on the path, found with {@link java.util.ServiceLoader}. */
public interface EngineProvider {
  /**
   * The name, as in the system property {@link Engines#PROPERTY}.
   *
   * @return the name, such as {@code ffm}
   */
  String name();

  /**
   * The rank among the engines: {@link Engines#open} tries the highest first.
   *
   * @return the rank
   */
  int rank();

  /**
   * Opens the engine.
   *
   * @return the engine
   * @throws UnsupportedOperationException with the reason, when this JVM cannot run it
   */
  Engine open();
}
