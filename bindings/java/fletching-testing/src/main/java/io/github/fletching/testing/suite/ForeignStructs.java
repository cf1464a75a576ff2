// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import com.sun.jna.Callback;
import com.sun.jna.CallbackReference;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** Structs of a foreign producer, which logs each struct's name at its release. */
final class ForeignStructs {
  private static final AtomicLong HANDLES = new AtomicLong(0x5000);
  private static final Map<Long, Consumer<Raw>> RELEASES = new ConcurrentHashMap<>();
  private static final Release ARRAY = self -> release(Raw.arrayAt(Pointer.nativeValue(self)));
  private static final Release SCHEMA = self -> release(Raw.schemaAt(Pointer.nativeValue(self)));

  final List<String> log = new CopyOnWriteArrayList<>();
  private final List<Object> kept = new ArrayList<>(); // memory that C refers to by address only

  /** A release callback. */
  interface Release extends Callback {
    void invoke(Pointer self);
  }

  private static void release(Raw struct) {
    RELEASES.remove(struct.get("private_data")).accept(struct);
    struct.set("release", 0);
  }

  /** Sets a release callback. It runs {@code onRelease} once, then marks the struct as released. */
  static Raw arm(Raw struct, boolean schema, Consumer<Raw> onRelease) {
    long handle = HANDLES.incrementAndGet();
    RELEASES.put(handle, onRelease);
    struct.set("private_data", handle);
    return struct.set("release", function(schema ? SCHEMA : ARRAY));
  }

  /** Removes the callback of a struct that its own callback will not release. */
  static void forget(long privateData) {
    RELEASES.remove(privateData);
  }

  static long function(Callback callback) {
    return Pointer.nativeValue(CallbackReference.getFunctionPointer(callback));
  }

  long text(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    Memory memory = keep(new Memory(bytes.length + 1L));
    memory.clear();
    memory.write(0, bytes, 0, bytes.length);
    return Pointer.nativeValue(memory);
  }

  long bytes(int... values) {
    Memory memory = keep(new Memory(values.length));
    for (int i = 0; i < values.length; i++) {
      memory.setByte(i, (byte) values[i]);
    }
    return Pointer.nativeValue(memory);
  }

  long longs(long... values) {
    Memory memory = keep(new Memory(8L * Math.max(values.length, 1)));
    memory.write(0, values, 0, values.length);
    return Pointer.nativeValue(memory);
  }

  <T> T keep(T object) {
    kept.add(object);
    return object;
  }

  /**
   * Returns an array with two NULL buffers, children named name0, name1 and so on, and optionally a
   * dictionary.
   */
  Raw array(String name, int children, boolean dictionary) {
    return fill(keep(Raw.array()), name, children, dictionary, null);
  }

  /** Returns the same array on CUDA device 3, with a sync event, which is logged too. */
  Raw deviceArray(String name, int children, boolean dictionary) {
    Raw raw = keep(Raw.deviceArray());
    raw.device().set("device_id", 3).setInt("device_type", 2).set("sync_event", longs(7));
    return fill(raw, name, children, dictionary, "event");
  }

  /** Fills an array; its release logs the name, then {@code last} unless that is null. */
  Raw fill(Raw raw, String name, int children, boolean dictionary, String last) {
    raw.set("length", 1).set("n_buffers", 2).set("buffers", longs(0, 0));
    long[] list = new long[children];
    for (int i = 0; i < children; i++) {
      list[i] = array(name + i, 0, false).address();
    }
    raw.set("n_children", children).set("children", children == 0 ? 0 : longs(list));
    raw.set("dictionary", dictionary ? array(name + "d", 0, false).address() : 0);
    return arm(
        raw,
        false,
        struct -> {
          for (int i = 0; i < struct.get("n_children"); i++) {
            releaseBelow(struct.child(i));
          }
          if (struct.get("dictionary") != 0) {
            releaseBelow(struct.dictionary());
          }
          log.add(name);
          if (last != null) {
            log.add(last);
          }
        });
  }

  private static void releaseBelow(Raw struct) {
    if (!struct.isReleased()) {
      struct.release();
    }
  }

  /** Returns a schema without children. */
  Raw schema(String name) {
    Raw raw = keep(Raw.schema()).set("format", text("i")).set("name", text(name));
    return arm(raw, true, struct -> log.add(name));
  }
}
