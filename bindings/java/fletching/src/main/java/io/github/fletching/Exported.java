// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.engine.Failures;
import io.github.fletching.abi.engine.Handles;
import java.util.concurrent.atomic.AtomicLong;

/** What private_data of a struct of ours refers to, by a handle. */
abstract class Exported {
  private static final AtomicLong LATE = new AtomicLong();
  private static volatile boolean shutdown;

  static {
    try {
      Runtime.getRuntime().addShutdownHook(new Thread(() -> shutdown = true, "fletching-shutdown"));
    } catch (IllegalStateException e) {
      shutdown = true;
    }
  }

  /** Keeps this object reachable until {@link #forget}. */
  final long handle = Handles.add(this);

  /** Releases a struct that is not released yet: marks it so, and everything else. */
  abstract void release(Kind kind, long struct);

  final void forget() {
    Handles.remove(handle);
  }

  /** Makes a struct one of ours. */
  final void adopt(Kind kind, long struct) {
    C.putAddress(struct + kind.release, kind.base().stub());
    C.putAddress(struct + kind.privateData, handle);
  }

  final boolean owns(Kind kind, long struct) {
    return kind.base().isStub(C.getAddress(struct + kind.release))
        && C.getAddress(struct + kind.privateData) == handle;
  }

  /** Releases a struct of ours without a call of C; false for one that is not. */
  static boolean releasedHere(Kind kind, long function, long struct) {
    if (!kind.base().isStub(function)) {
      return false;
    }
    try {
      of(kind, struct).release(kind.base(), struct);
    } catch (Throwable thrown) { // as if C had called it
      Failures.log(kind.cName() + ".release", thrown);
    }
    return true;
  }

  static Exported of(Kind kind, long struct) {
    return Handles.find(Exported.class, C.getAddress(struct + kind.privateData));
  }

  static long newStub(Kind kind) {
    return C.stub(
        kind.cName() + ".release",
        "va",
        0,
        (struct, b, c, d) -> {
          releaseFromC(kind, struct);
          return 0;
        });
  }

  private static void releaseFromC(Kind kind, long struct) {
    if (kind.isReleased(struct)) {
      return;
    }
    if (shutdown) {
      kind.markReleased(struct);
      if (LATE.getAndIncrement() == 0) { // loggers may be closed already
        System.err.println(
            "fletching: release of " + kind.cName() + " during shutdown: it leaks, as any later");
      }
      return;
    }
    of(kind, struct).release(kind, struct);
  }

  /** Whether the JVM shuts down. */
  static boolean isShutdown() {
    return shutdown;
  }

  static long lateReleases() {
    return LATE.get();
  }

  /** Closes an object of the user's where no error can be returned. */
  static void discard(Object object) {
    if (object instanceof AutoCloseable) {
      try {
        ((AutoCloseable) object).close();
      } catch (Throwable thrown) {
        Failures.log("close", thrown);
      }
    }
  }
}
