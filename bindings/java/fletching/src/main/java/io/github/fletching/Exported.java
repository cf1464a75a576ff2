// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.engine.Failures;
import io.github.fletching.abi.engine.Handles;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicLong;

/** What private_data of a struct of ours refers to, by a handle. */
abstract class Exported {
  static final AtomicLong LATE = new AtomicLong(); // releases during shutdown
  private static final Thread HOOK =
      new Thread(null, () -> shutdown = true, "fletching-shutdown", 0, false);
  private static volatile boolean shutdown;

  static {
    try {
      HOOK.setContextClassLoader(null); // of whatever called first
      Runtime.getRuntime().addShutdownHook(HOOK);
    } catch (IllegalStateException e) {
      shutdown = true;
    }
  }

  static void removeHook() {
    try {
      Runtime.getRuntime().removeShutdownHook(HOOK);
    } catch (IllegalStateException e) {
      // The JVM shuts down.
    }
  }

  /** Keeps this object reachable until {@link #forget}. */
  final long handle = Handles.add(this);

  /**
   * Releases a struct that is not released yet, and marks it so; frees that of a tensor. Adds the
   * objects and shares that it owned to {@code ended}, in the order in which they are to be closed.
   */
  abstract void release(Kind kind, long struct, Deque<Object> ended);

  final void forget() {
    Handles.remove(handle);
  }

  /** Adopts a struct. After an error the struct is unchanged and this object is forgotten. */
  final void adopt(Kind kind, long struct) {
    Kind base = kind.base();
    try {
      base.callback.install(struct, base.releases);
    } catch (Throwable noFunction) {
      forget();
      throw noFunction;
    }
    C.putAddress(struct + kind.privateData, handle);
  }

  final boolean owns(Kind kind, long struct) {
    return kind.callback.isOurs(C.getAddress(struct + kind.release))
        && C.getAddress(struct + kind.privateData) == handle;
  }

  /**
   * Releases a struct of ours without a call of C; false for another one. The caller closes what is
   * added to {@code ended}; if that is null, it is closed here.
   */
  static boolean releasedHere(Kind kind, long function, long struct, Deque<Object> ended) {
    if (!kind.callback.isOurs(function)) {
      return false;
    }
    try {
      if (ended == null) {
        releaseAll(kind.base(), struct);
      } else {
        of(kind, struct).release(kind.base(), struct, ended);
      }
    } catch (Throwable thrown) { // as if C had called it
      Failures.log(kind.callback.title(), thrown);
    }
    return true;
  }

  /** Releases a struct of ours and what it owned, which may own others, without recursion. */
  private static void releaseAll(Kind kind, long struct) {
    Deque<Object> ended = new ArrayDeque<>(2);
    of(kind, struct).release(kind, struct, ended);
    for (Object next = ended.poll(); next != null; next = ended.poll()) {
      int later = ended.size();
      discard(next, ended);
      for (int i = ended.size(); i > later; i--) {
        ended.push(ended.pollLast()); // what it owned ends before what is later
      }
    }
  }

  static Exported of(Kind kind, long struct) {
    return Handles.find(Exported.class, C.getAddress(struct + kind.privateData));
  }

  /** What C calls. Returns the 0 of a stub without a result. */
  static long releaseFromC(Kind kind, long struct) {
    boolean isLive = kind.isTensor() || !kind.isReleased(struct);
    if (shutdown && isLive) {
      if (!kind.isTensor()) {
        kind.markReleased(struct);
      }
      if (LATE.getAndIncrement() == 0) { // loggers may be closed already
        System.err.println(
            "fletching: " + kind.callback.title() + " during shutdown: it leaks, as any later");
      }
    } else if (isLive) {
      releaseAll(kind, struct);
    }
    return 0;
  }

  /** Whether the JVM shuts down. */
  static boolean isShutdown() {
    return shutdown;
  }

  /** Closes an object of the user's where no error can be returned. */
  static void discard(Object object) {
    discard(object, null);
  }

  /** The same, also for a share; what ends with it as in {@link Kind#releaseOnce(long, Deque)}. */
  private static void discard(Object object, Deque<Object> ended) {
    try {
      if (object instanceof Share) {
        ((Share) object).leave(ended);
      } else if (object instanceof Owner) {
        ((Owner) object).close(ended);
      } else if (object instanceof Shared) {
        ((Shared<?>) object).owner.close(ended);
      } else if (object instanceof AutoCloseable) {
        ((AutoCloseable) object).close();
      }
    } catch (Throwable thrown) {
      Failures.log("close", thrown);
    }
  }
}
