// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** Counts of the arrays that {@link DeviceArray#releaseAfter} has taken, at one time. */
public final class PendingReleases {
  private final long pending;
  private final long refused;
  private final long running;
  private final long leaked;
  private final long leakedEvents;
  private final String lastRefusal;

  PendingReleases(
      long pending,
      long refused,
      long running,
      long leaked,
      long leakedEvents,
      String lastRefusal) {
    this.pending = pending;
    this.refused = refused;
    this.running = running;
    this.leaked = leaked;
    this.leakedEvents = leakedEvents;
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
   * Arrays whose release callback is due, or has not returned.
   *
   * @return the number of arrays
   */
  public long running() {
    return running;
  }

  /**
   * Arrays that could neither be deferred nor waited for, since the start of the process.
   *
   * @return the number of arrays
   */
  public long leaked() {
    return leaked;
  }

  /**
   * Events of Fletching's that could not be destroyed, since the start of the process.
   *
   * @return the number of events
   */
  public long leakedEvents() {
    return leakedEvents;
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
    String leaks = leaked == 0 ? "" : ", leaked " + leaked;
    return "pending " + pending + ", refused " + refused + leaks + ": " + lastRefusal;
  }
}
