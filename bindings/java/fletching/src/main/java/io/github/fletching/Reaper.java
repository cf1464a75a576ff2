// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.engine.Failures;
import java.util.ArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Polls whether the work that reads an array has completed, on a thread that runs while arrays are
 * pending. Release callbacks run on separate threads, so that a slow callback does not delay
 * others.
 */
final class Reaper implements Runnable {
  private static final long SHORTEST_PAUSE = 20_000; // nanoseconds
  private static final long LONGEST_PAUSE = 20_000_000;
  private static final long REST = 50; // times the duration of a query of all entries
  private static final long LONGEST_REST = 100_000_000;
  private static final long LINGER = 1_000_000_000; // idle time before a thread ends
  private static final int MOST_REFUSALS = 4; // from then on, every 16th query is made
  private static final int MOST_RELEASES = 64; // each may block a thread

  private static final Reaper INSTANCE = new Reaper();

  private final ThreadPoolExecutor releases =
      new ThreadPoolExecutor(
          MOST_RELEASES,
          MOST_RELEASES,
          LINGER,
          TimeUnit.NANOSECONDS,
          new LinkedBlockingQueue<>(),
          Reaper::newThread);
  private final ArrayList<Deferred> incoming = new ArrayList<>();
  private final ArrayList<Deferred> entries = new ArrayList<>(); // used by the thread only
  private Thread thread; // null while no array is pending
  private long pending;
  private long refused;
  private long running; // arrays whose release is due or running
  private String lastRefusal = "";

  private Reaper() {
    releases.allowCoreThreadTimeOut(true);
  }

  /** An array to be released when its event has completed. */
  static final class Deferred implements Runnable {
    final Vendor vendor;
    final Slot slot;
    private final DeviceStream stream; // records the event after a capture; else null
    private Recorded recorded; // null until recorded, or if the stream is lost
    // The number of consecutive failed queries, up to a limit, and the number of queries to skip.
    int refusals;
    int skips;
    boolean handedOver;
    private boolean isRunning; // the release has started

    Deferred(Vendor vendor, Recorded recorded, DeviceStream stream, Slot slot) {
      this.vendor = vendor;
      this.recorded = recorded;
      this.stream = stream;
      this.slot = slot;
    }

    boolean hasPassed() {
      if (recorded != null) {
        return vendor.hasPassed(recorded);
      }
      try {
        recorded = vendor.record(stream);
      } catch (FletchingException e) {
        if (e.errno() != FletchingException.EBUSY) {
          if (vendor.isLost(stream)) {
            return true;
          }
          throw e;
        }
      }
      return false;
    }

    /**
     * Runs the callback at the event's origin, where it may free memory while another thread
     * captures.
     */
    void release() {
      if (recorded != null) {
        vendor.settle(recorded);
      }
      try {
        vendor.runAtOrigin(recorded, this);
      } finally {
        if (!isRunning) { // no memory to enter the context
          run();
        }
        if (recorded != null) {
          recorded.free();
        }
      }
    }

    @Override
    public void run() {
      isRunning = true;
      if (recorded != null) {
        recorded.end();
      }
      ReleaseAfter.release(slot);
    }
  }

  /** Takes the array. Throws EAGAIN if no thread can be started. */
  static void add(Deferred entry) {
    INSTANCE.take(entry);
  }

  static PendingReleases counts() {
    synchronized (INSTANCE) {
      return new PendingReleases(
          INSTANCE.pending,
          INSTANCE.refused,
          INSTANCE.running,
          ReleaseAfter.leaked(),
          Recorded.leaked(),
          INSTANCE.lastRefusal);
    }
  }

  private static Thread newThread(Runnable body) {
    Thread thread = new Thread(null, body, "fletching-release", 0, false);
    thread.setDaemon(true);
    thread.setContextClassLoader(null); // else the first caller's class loader
    return thread;
  }

  private synchronized void take(Deferred entry) {
    if (thread == null) {
      Thread started = newThread(this);
      try {
        started.start();
      } catch (OutOfMemoryError e) {
        throw new FletchingException(FletchingException.EAGAIN, "no thread can be started", e);
      }
      thread = started;
    }
    incoming.add(entry);
    pending++;
    LockSupport.unpark(thread);
  }

  /**
   * Queries new entries at once, and all entries periodically: often after a change, then ever more
   * rarely, and never for more than a fiftieth of the time.
   */
  @Override
  public void run() {
    long pause = SHORTEST_PAUSE;
    long due = System.nanoTime();
    while (collect(due)) {
      long begin = System.nanoTime();
      boolean isDue = begin - due >= 0;
      int known = entries.size();
      int count = known;
      try {
        addIncoming();
        count = entries.size();
        entries.subList(isDue ? 0 : known, count).removeIf(this::handOver);
      } catch (OutOfMemoryError e) {
        isDue = true; // no entry is lost: query all again
      }
      pause = isDue ? Math.min(pause * 2, LONGEST_PAUSE) : pause;
      if (known < count || entries.size() < count) {
        pause = SHORTEST_PAUSE;
      }
      long end = System.nanoTime();
      if (isDue) {
        due = end + Math.max(pause, Math.min((end - begin) * REST, LONGEST_REST));
      } else if (end + pause - due < 0) {
        due = end + pause;
      }
    }
  }

  /** Sleeps until a query is due or an entry arrives; returns false if the thread must end. */
  private boolean collect(long due) {
    long left = entries.isEmpty() ? LINGER : due - System.nanoTime();
    if (left > 0) {
      LockSupport.parkNanos(this, left);
    }
    Thread.interrupted(); // an interrupt would end every sleep at once
    synchronized (this) {
      if (entries.isEmpty() && incoming.isEmpty()) {
        thread = null;
      }
      return thread != null && !Exported.isShutdown();
    }
  }

  private synchronized void addIncoming() {
    entries.addAll(incoming);
    incoming.clear();
  }

  /** Starts the release of an array whose event has completed. */
  private boolean handOver(Deferred entry) {
    if (entry.handedOver || !hasPassed(entry)) {
      return entry.handedOver;
    }
    entry.handedOver = true; // set even if memory runs out before the entry is removed
    try {
      releases.execute(() -> release(entry));
    } catch (OutOfMemoryError e) { // no thread could be started
      release(entry);
    }
    return true;
  }

  /**
   * Queries the driver. After an error the state of the work is unknown: the array stays pending,
   * and is queried ever more rarely.
   */
  private boolean hasPassed(Deferred entry) {
    if (entry.skips > 0) {
      entry.skips--;
      return false;
    }
    boolean passed = false;
    Throwable refusal = null;
    try {
      passed = entry.hasPassed();
    } catch (Throwable thrown) {
      refusal = thrown;
    }
    synchronized (this) {
      refused -= entry.refusals > 0 ? 1 : 0;
      pending -= passed ? 1 : 0;
      running += passed ? 1 : 0;
      if (refusal == null) {
        entry.refusals = 0;
      } else {
        refused++;
        lastRefusal = String.valueOf(refusal.getMessage());
        entry.refusals = Math.min(entry.refusals + 1, MOST_REFUSALS);
        entry.skips = (1 << entry.refusals) - 1;
      }
    }
    return passed;
  }

  private void release(Deferred entry) {
    if (Exported.isShutdown()) {
      return;
    }
    try {
      entry.release();
    } catch (Throwable thrown) {
      Failures.log("releaseAfter", thrown);
    } finally {
      synchronized (this) {
        running--;
      }
    }
  }
}
