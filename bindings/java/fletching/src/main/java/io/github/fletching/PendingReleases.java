// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** A snapshot of the counts of arrays passed to {@link DeviceArray#releaseAfter}. */
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
   * Arrays whose stream has not reached their release point.
   *
   * @return the number of arrays
   */
  public long pending() {
    return pending;
  }

  /**
   * Pending arrays whose last query failed.
   *
   * @return the number of arrays
   */
  public long refused() {
    return refused;
  }

  /**
   * Arrays whose release callback is due or running.
   *
   * @return the number of arrays
   */
  public long running() {
    return running;
  }

  /**
   * Arrays leaked since the start of the process, because their release could neither be deferred
   * nor wait for the stream.
   *
   * @return the number of arrays
   */
  public long leaked() {
    return leaked;
  }

  /**
   * Events of this library that could not be destroyed, since the start of the process.
   *
   * @return the number of events
   */
  public long leakedEvents() {
    return leakedEvents;
  }

  /**
   * The latest error of a failed query.
   *
   * @return the error; empty for none
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
