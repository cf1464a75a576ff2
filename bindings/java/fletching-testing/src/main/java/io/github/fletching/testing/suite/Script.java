// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.jna.Callback;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.ArrayOwner;
import io.github.fletching.ArrayStream;
import io.github.fletching.BatchStream;
import io.github.fletching.DeviceArrayStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** A foreign stream that follows a script and counts its calls. */
final class Script {
  static final String TEXT = "the foreign text";

  private static final AtomicLong HANDLES = new AtomicLong(0x7000);
  private static final Map<Long, Script> SCRIPTS = new ConcurrentHashMap<>();

  /** The kinds of streams, each with separate callbacks. */
  enum Flavor {
    PLAIN,
    DEVICE;

    private final Fill getSchema = (self, out) -> of(self, "get_schema").getSchema(out);
    private final Fill getNext = (self, out) -> of(self, "get_next").getNext(out);
    private final Text getLastError = self -> of(self, "get_last_error").text;
    private final ForeignStructs.Release release = self -> of(self, "release").end(self);

    Raw room() {
      return this == PLAIN ? Raw.stream() : Raw.deviceStream();
    }

    Raw at(Pointer stream) {
      long address = Pointer.nativeValue(stream);
      return this == PLAIN ? Raw.streamAt(address) : Raw.deviceStreamAt(address);
    }

    /** Returns the script of a stream and counts the call. */
    private Script of(Pointer self, String callback) {
      Script script = SCRIPTS.get(at(self).get("private_data"));
      script.calls.merge(callback, 1, Integer::sum);
      if (script.released) {
        script.problems.add(callback + ": called after the release");
      }
      return script;
    }

    private void fill(Raw stream) {
      stream.set("get_schema", ForeignStructs.function(getSchema));
      stream.set("get_next", ForeignStructs.function(getNext));
      stream.set("get_last_error", ForeignStructs.function(getLastError));
      stream.set("release", ForeignStructs.function(release));
    }

    /** Exports the batches of a stream through a stream of this library. */
    Raw export(BatchStream<? extends ArrayOwner> batches) {
      Raw raw = room();
      if (this == PLAIN) {
        ArrayStream.of(batches.schema(), (ArrayStream) batches).moveTo(raw.address());
      } else {
        DeviceArrayStream source = (DeviceArrayStream) batches;
        DeviceArrayStream.of(source.schema(), source.deviceType(), source).moveTo(raw.address());
      }
      return raw;
    }

    BatchStream<? extends ArrayOwner> wrap(Raw stream) {
      return this == PLAIN ? stream.give(ArrayStream::wrap) : stream.give(DeviceArrayStream::wrap);
    }
  }

  interface Fill extends Callback {
    int invoke(Pointer self, Pointer out);
  }

  interface Text extends Callback {
    Pointer invoke(Pointer self);
  }

  final ForeignStructs foreign = new ForeignStructs();
  final Map<String, Integer> calls = new ConcurrentHashMap<>();
  final Map<Integer, Integer> codes = new HashMap<>(); // by the number of the get_next call, from 1
  Memory text = new Memory(TEXT.length() + 1);
  int promised = 2;
  int found = 2;
  Consumer<Raw> adjust = batch -> {}; // changes a batch before it is returned
  boolean hasSchema = true;
  Runnable atEnd = () -> {}; // runs when get_next returns the end

  private final Flavor flavor;
  private final int batches;
  private final long handle = HANDLES.incrementAndGet();
  private final List<String> problems = new ArrayList<>();
  private boolean released;

  /** Creates a stream of {@code batches} batches with the lengths 1, 2 and so on. */
  Script(Flavor flavor, int batches) {
    this.flavor = flavor;
    this.batches = batches;
    text.setString(0, TEXT, "UTF-8");
  }

  /** Imports the stream, with NULL for the named callbacks. */
  BatchStream<? extends ArrayOwner> open(String... missing) {
    SCRIPTS.put(handle, this);
    Raw raw = flavor.room();
    flavor.fill(raw);
    for (String name : missing) {
      raw.set(name, 0);
    }
    raw.set("private_data", handle);
    if (flavor == Flavor.DEVICE) {
      raw.setInt("device_type", promised);
    }
    return flavor.wrap(raw);
  }

  int calls(String name) {
    return calls.getOrDefault(name, 0);
  }

  /** Expects one release and no later call. */
  void assertEnded() {
    assertEquals(List.of(), problems);
    assertEquals(1, calls("release"));
    SCRIPTS.remove(handle);
  }

  private int getSchema(Pointer out) {
    if (hasSchema) {
      foreign.schema("schema").move(Raw.schemaAt(Pointer.nativeValue(out)));
    }
    return 0;
  }

  private int getNext(Pointer out) {
    int call = calls("get_next");
    if (codes.containsKey(call)) {
      return codes.get(call);
    }
    long target = Pointer.nativeValue(out);
    if (call > batches) {
      atEnd.run();
      Raw.arrayAt(target).set("release", 0);
    } else if (flavor == Flavor.PLAIN) {
      foreign.array("batch", 0, false).set("length", call).move(Raw.arrayAt(target));
    } else {
      Raw batch = foreign.keep(Raw.deviceArray());
      batch.device().setInt("device_type", found);
      foreign.fill(batch, "batch", 0, false, null).set("length", call);
      adjust.accept(batch);
      batch.move(Raw.arrayAt(target));
    }
    return 0;
  }

  private void end(Pointer self) {
    released = true;
    flavor.at(self).set("release", 0);
  }
}
