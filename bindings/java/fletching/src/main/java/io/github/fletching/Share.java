// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.engine.Handles;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A struct with several users: views of it, or children that need its event. The last user releases
 * it.
 */
final class Share {
  private final Kind kind;
  private final Slot held;
  private final AtomicInteger users;

  /** Moves a schema or an array in. */
  Share(Kind kind, long source, int users) {
    this.kind = kind.base();
    this.users = new AtomicInteger(users);
    held = Slot.take(this.kind);
    C.copy(source, held.address, this.kind.size);
  }

  /** Moves the struct into a share with one user, and replaces it with a Use. */
  static Share begin(Kind kind, long struct) {
    Share share = new Share(kind, struct, 1);
    try {
      new Use(share).adopt(kind, struct);
      return share;
    } catch (Throwable noMemory) {
      share.undo();
      throw noMemory;
    }
  }

  /** Leaves the struct at its source if it could not be replaced there. */
  private void undo() {
    held.free();
  }

  void use() {
    users.incrementAndGet();
  }

  void leave(Deque<Object> ended) {
    if (users.decrementAndGet() == 0) {
      kind.releaseOnce(held.address, ended);
      held.free();
    }
  }

  /** Replaces a struct that was moved into a share, with the same contents. */
  static final class Use extends Exported {
    final Share share;

    private Use(Share share) {
      this.share = share;
    }

    @Override
    void release(Kind kind, long struct, Deque<Object> ended) {
      kind.markReleased(struct);
      forget();
      ended.add(share);
    }
  }

  /** An object attached to a struct of any producer, and closed after the struct is released. */
  static final class Hook extends Exported {
    private final long release;
    private final long privateData;
    private final Object object;

    private Hook(Kind kind, long struct, Object object) {
      release = C.getAddress(struct + kind.release);
      privateData = C.getAddress(struct + kind.privateData);
      this.object = object;
    }

    static void attach(Kind kind, long struct, Object object) {
      new Hook(kind, struct, object).adopt(kind, struct);
    }

    /**
     * Removes this and all earlier hooks without recursion, releases the struct, and adds all
     * objects to {@code ended}.
     */
    @Override
    void release(Kind kind, long struct, Deque<Object> ended) {
      forget();
      Deque<Object> objects = new ArrayDeque<>(2);
      for (Hook next = this; next != null; next = next.takeBelow(kind)) {
        C.putAddress(struct + kind.release, next.release);
        C.putAddress(struct + kind.privateData, next.privateData);
        if (next.object != null) {
          objects.push(next.object);
        }
      }
      kind.releaseOnce(struct, ended);
      ended.addAll(objects);
    }

    /** Removes and returns the hook attached before this one; null for none. */
    private Hook takeBelow(Kind kind) {
      return kind.callback.isOurs(release) ? Handles.poll(Hook.class, privateData) : null;
    }
  }

  /**
   * An array whose event its children need. The data below it is released without waiting for them.
   */
  static final class Parent extends Exported {
    private final Share share;

    private Parent(Share share) {
      this.share = share;
    }

    /** Adds a user to the share that keeps the event of an array alive. */
    static Share hold(long array) {
      Kind kind = Kind.ARRAY;
      if (kind.callback.isOurs(C.getAddress(array + kind.release))) {
        Object known = Handles.find(Exported.class, C.getAddress(array + kind.privateData));
        if (known instanceof Parent) {
          ((Parent) known).share.use();
          return ((Parent) known).share;
        }
      }
      Share share = new Share(kind, array, 2);
      try {
        new Parent(share).adopt(kind, array);
      } catch (Throwable noMemory) {
        share.undo();
        throw noMemory;
      }
      return share;
    }

    @Override
    void release(Kind kind, long array, Deque<Object> ended) {
      kind.markReleased(array);
      forget();
      int count = kind.childCount(array);
      for (int i = 0; i < count; i++) {
        kind.releaseOnce(kind.child(array, i), ended);
      }
      kind.releaseOnce(kind.dictionary(array), ended);
      ended.add(share);
    }
  }
}
