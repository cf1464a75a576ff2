// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** Counts of the arrays that {@link DeviceArray#releaseAfter} has taken, at one time. */
public final class PendingReleases {
  private final long pending;
  private final long refused;
  private final String lastRefusal;

  PendingReleases(long pending, long refused, String lastRefusal) {
    this.pending = pending;
    this.refused = refused;
    this.lastRefusal = lastRefusal;
  }

  /**
   * Arrays whose stream has not reached their point yet.
   *
   * @return the number of arrays
   */
  public long pending() {
    return pending;
  }

  /**
   * Of these, those that the driver last said nothing about.
   *
   * @return the number of arrays
   */
  public long refused() {
    return refused;
  }

  /**
   * Its newest error; empty when there was none.
   *
   * @return the error, empty for none
   */
  public String lastRefusal() {
    return lastRefusal;
  }

  @Override
  public String toString() {
    return "pending " + pending + ", refused " + refused + ": " + lastRefusal;
  }
}
