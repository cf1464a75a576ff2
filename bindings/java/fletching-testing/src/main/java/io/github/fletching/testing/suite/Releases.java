// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Callback;
import com.sun.jna.CallbackReference;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.FletchingException;
import io.github.fletching.abi.DeviceType;
import java.lang.ref.Reference;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.function.Executable;

/** Counts releases of arrays from a foreign producer. */
final class Releases {
  private static final Map<Long, Foreign> FOREIGN = new ConcurrentHashMap<>();
  private static final AtomicLong LAST = new AtomicLong();
  private static final Release RELEASE = Releases::release; // kept reachable

  private final AtomicInteger count = new AtomicInteger();
  private final Runnable onRelease;

  Releases() {
    this(() -> {});
  }

  /** Runs {@code onRelease} in each release. */
  Releases(Runnable onRelease) {
    this.onRelease = onRelease;
  }

  interface Release extends Callback {
    void run(Pointer array);
  }

  private static final class Foreign {
    final Releases releases;
    final Raw[] children;
    final Memory list;

    Foreign(Releases releases, Raw... children) {
      this.releases = releases;
      this.children = children;
      list = new Memory(8L * Math.max(children.length, 1));
      for (int i = 0; i < children.length; i++) {
        list.setLong(8L * i, children[i].address());
      }
    }
  }

  private static void release(Pointer array) {
    Raw raw = Raw.arrayAt(Pointer.nativeValue(array));
    Foreign foreign = FOREIGN.remove(raw.get("private_data"));
    for (Raw child : foreign.children) {
      if (!child.isReleased()) {
        child.release();
      }
    }
    raw.set("release", 0);
    foreign.releases.onRelease.run();
    foreign.releases.count.incrementAndGet();
  }

  private static Raw fill(Raw raw, Releases releases, Raw... children) {
    Foreign foreign = new Foreign(releases, children);
    long handle = LAST.incrementAndGet();
    FOREIGN.put(handle, foreign);
    raw.set("n_children", children.length)
        .set("children", children.length == 0 ? 0 : Pointer.nativeValue(foreign.list))
        .set("private_data", handle);
    return raw.set("release", Pointer.nativeValue(CallbackReference.getFunctionPointer(RELEASE)));
  }

  /**
   * Returns an array without children, with an event or with a value to be rejected as an event.
   */
  DeviceArray array(DeviceType type, long deviceId, long event) {
    return imported(fill(Raw.deviceArray(), this), type, deviceId, event);
  }

  DeviceArray array(DeviceType type) {
    return array(type, 0, 0);
  }

  /** Returns an array with two children, whose releases {@code children} counts. */
  DeviceArray array(DeviceType type, Releases children) {
    Raw first = fill(Raw.array(), children);
    Raw second = fill(Raw.array(), children);
    return imported(fill(Raw.deviceArray(), this, first, second), type, 0, 0);
  }

  private static DeviceArray imported(Raw raw, DeviceType type, long deviceId, long event) {
    raw.device()
        .setInt("device_type", type.value())
        .set("device_id", deviceId)
        .set("sync_event", event);
    DeviceArray array = raw.give(DeviceArray::wrap);
    Reference.reachabilityFence(raw);
    return array;
  }

  /** Returns an array whose event memory lives until the release. */
  static DeviceArray awaited(DeviceType type, Memory event) {
    return new Releases(() -> Reference.reachabilityFence(event))
        .array(type, 0, event == null ? 0 : Pointer.nativeValue(event));
  }

  void assertCount(int expected) {
    assertEquals(expected, count.get());
  }

  void waitFor(int expected) {
    while (count.get() < expected) {
      pause();
    }
  }

  /** Yields; fails if the test has timed out. */
  static void pause() {
    assertFalse(
        Thread.currentThread().isInterrupted(),
        "timeout: the change that the test waits for did not happen");
    Thread.yield();
  }

  /** Expects an error code and parts of the message. */
  static void assertFails(int code, Executable operation, String... parts) {
    FletchingException error = assertThrows(FletchingException.class, operation);
    assertEquals(code, error.errno(), error.getMessage());
    for (String part : parts) {
      assertTrue(error.getMessage().contains(part), part + " in " + error.getMessage());
    }
  }

  /** Expects an error code and the complete message. */
  static void assertError(int code, String text, Runnable operation) {
    FletchingException error = errorOf(operation);
    assertEquals(text, error == null ? "no error" : error.getMessage());
    assertEquals(code, error.errno());
  }

  /** Returns the error of an operation, or null. */
  static FletchingException errorOf(Runnable operation) {
    try {
      operation.run();
      return null;
    } catch (FletchingException e) {
      return e;
    }
  }

  /** Exports an array and closes it; the array has an event unless the export fails. */
  static void export(DeviceStream stream) {
    Releases releases = new Releases();
    DeviceArray array = releases.array(stream.deviceType(), new Releases());
    boolean hasFailed = true;
    try {
      array.exportWithEvent(stream);
      hasFailed = false;
    } finally {
      assertEquals(hasFailed, array.syncEvent() == 0);
      array.close();
      releases.assertCount(1);
    }
  }

  /** Releases an array after the stream's work and waits for it. If this fails, the array leaks. */
  static void releaseAfter(DeviceStream stream) {
    Releases releases = new Releases();
    DeviceArray array = releases.array(stream.deviceType());
    array.releaseAfter(stream);
    releases.waitFor(1);
  }

  /** Runs the body on a new thread, which has no context. */
  static void onThread(Runnable body) {
    Throwable[] thrown = {null};
    Thread thread =
        new Thread(
            () -> {
              try {
                body.run();
              } catch (Throwable e) {
                thrown[0] = e;
              }
            });
    thread.start();
    try {
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError("the thread did not end", e);
    }
    if (thrown[0] != null) {
      throw new AssertionError(thrown[0]);
    }
  }
}
