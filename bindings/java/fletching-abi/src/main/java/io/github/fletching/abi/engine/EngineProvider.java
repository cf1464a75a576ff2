// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi.engine;

/** An engine that is on the path, found with {@link java.util.ServiceLoader}. */
public interface EngineProvider {
  /** The name, as the system property says it: {@code ffm}, {@code jna}. */
  String name();

  /** Of several engines that can be opened, the one with the highest rank is used. */
  int rank();

  /**
   * Opens the engine.
   *
   * @throws UnsupportedOperationException with the reason, when this JVM cannot run it
   */
  Engine open();
}
