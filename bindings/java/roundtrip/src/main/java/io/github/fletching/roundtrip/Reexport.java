// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.Schema;
import io.github.fletching.Shared;
import java.util.Iterator;
import java.util.concurrent.atomic.AtomicLong;

/** The same data under releases of Java, which are counted. */
final class Reexport {
  private static final AtomicLong EXPORTED = new AtomicLong();
  private static final AtomicLong RELEASED = new AtomicLong();

  private Reexport() {}

  /** How many structs were exported here. */
  static long exported() {
    return EXPORTED.get();
  }

  /** How many of them have been released. */
  static long released() {
    return RELEASED.get();
  }

  /** Counts the release of what it is attached to. */
  static AutoCloseable count() {
    EXPORTED.incrementAndGet();
    return RELEASED::incrementAndGet;
  }

  /** A view of the source, which is released with it. */
  static Schema schema(Schema source) {
    try (Shared<Schema> shared = source.share()) {
      Schema view = shared.view();
      view.attach(count());
      return view;
    }
  }

  /** The same for a device array. */
  static DeviceArray array(DeviceArray source) {
    try (Shared<DeviceArray> shared = source.share()) {
      DeviceArray view = shared.view();
      view.attach(count());
      return view;
    }
  }

  /** Sees the schema and each batch of a stream; an exception of it fails the get_next. */
  interface Observer {
    void see(Schema schema, DeviceArray batch);
  }

  /** A stream of Java over the source, which it owns. An error of the source is its error. */
  static DeviceArrayStream stream(DeviceArrayStream source, Observer observer) {
    try {
      Batches batches = new Batches(source, observer);
      try {
        return DeviceArrayStream.of(schema(source.schema()), source.deviceType(), batches);
      } catch (RuntimeException e) {
        batches.close();
        throw e;
      }
    } catch (RuntimeException e) {
      source.close();
      throw e;
    }
  }

  private static final class Batches implements Iterator<DeviceArray>, AutoCloseable {
    private final DeviceArrayStream source;
    private final Observer observer;
    private final Schema schema;

    Batches(DeviceArrayStream source, Observer observer) {
      this.source = source;
      this.observer = observer;
      schema = source.schema();
      EXPORTED.incrementAndGet();
    }

    @Override
    public boolean hasNext() {
      return source.hasNext();
    }

    @Override
    public DeviceArray next() {
      try (DeviceArray batch = source.next()) { // which does nothing after the share
        observer.see(schema, batch);
        return array(batch);
      }
    }

    @Override
    public void close() {
      source.close();
      schema.close();
      RELEASED.incrementAndGet();
    }
  }
}
