// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.engine.Failures;
import io.github.fletching.abi.engine.Handles;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicLong;

/** The object behind private_data of an exported struct, which stores its handle. */
abstract class Exported {
  static final AtomicLong LATE = new AtomicLong(); // releases during shutdown
  private static final Thread HOOK =
      new Thread(null, () -> shutdown = true, "fletching-shutdown", 0, false);
  private static volatile boolean shutdown;

  static {
    try {
      HOOK.setContextClassLoader(null); // else the first caller's class loader
      Runtime.getRuntime().addShutdownHook(HOOK);
    } catch (IllegalStateException e) {
      shutdown = true;
    }
  }

  static void removeHook() {
    try {
      Runtime.getRuntime().removeShutdownHook(HOOK);
    } catch (IllegalStateException e) {
      // The JVM is shutting down.
    }
  }

  /** Keeps this object reachable until {@link #forget}. */
  final long handle = Handles.add(this);

  /**
   * Releases a live struct and marks it as released; frees the struct of a tensor. Adds owned
   * objects and shares to {@code ended}, in the order in which they must be closed.
   */
  abstract void release(Kind kind, long struct, Deque<Object> ended);

  final void forget() {
    Handles.remove(handle);
  }

  /** Adopts a struct. On failure, leaves the struct unchanged and forgets this object. */
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
   * Releases an exported struct without a C call; returns false for a foreign struct. The caller
   * closes the objects added to {@code ended}; if it is null, they are closed here.
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
    } catch (Throwable thrown) { // log it, as the C callback does
      Failures.log(kind.callback.title(), thrown);
    }
    return true;
  }

  /** Releases an exported struct and, without recursion, everything that it owned. */
  private static void releaseAll(Kind kind, long struct) {
    Deque<Object> ended = new ArrayDeque<>(2);
    of(kind, struct).release(kind, struct, ended);
    for (Object next = ended.poll(); next != null; next = ended.poll()) {
      int later = ended.size();
      discard(next, ended);
      for (int i = ended.size(); i > later; i--) {
        ended.push(ended.pollLast()); // close its objects before later ones
      }
    }
  }

  static Exported of(Kind kind, long struct) {
    return Handles.find(Exported.class, C.getAddress(struct + kind.privateData));
  }

  /** The release callback. Returns the result 0 of a void stub. */
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

  /** Whether the JVM is shutting down. */
  static boolean isShutdown() {
    return shutdown;
  }

  /** Closes a user's object where no error can be returned. */
  static void discard(Object object) {
    discard(object, null);
  }

  /**
   * Closes an object or leaves a share; {@code ended} as in {@link Kind#releaseOnce(long, Deque)}.
   */
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
