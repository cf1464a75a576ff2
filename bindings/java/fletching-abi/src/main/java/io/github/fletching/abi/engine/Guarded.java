// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi.engine;

/** A callback that logs exceptions instead of throwing them. */
public final class Guarded implements Engine.Callback {
  private final String name;
  private final long failure;
  private final Engine.Callback callback;

  /**
   * Guards a callback.
   *
   * @param name the name of the callback, for the log
   * @param failure the result if the callback throws
   * @param callback the callback to guard
   */
  public Guarded(String name, long failure, Engine.Callback callback) {
    this.name = name;
    this.failure = failure;
    this.callback = callback;
  }

  @Override
  public long run(long first, long second, long third, long fourth) {
    try {
      return callback.run(first, second, third, fourth);
    } catch (Throwable thrown) {
      Failures.log(name, thrown);
      return failure;
    }
  }
}
