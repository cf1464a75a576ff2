// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.Cleaner;
import java.util.ArrayDeque;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Room for one struct at a time in memory of C, used again: memory and cleaner cost something once
 * and not for each struct. Only an owner refers to a slot in use. When an owner is collected that
 * was not closed, its slot is too, and the cleaner releases the struct.
 */
final class Slot {
  private static final int SLAB = 64; // slots
  private static final boolean STACKS = Boolean.getBoolean("io.github.fletching.leakStacks");
  static final Cleaner CLEANER = Cleaner.create();
  static final AtomicLong LEAKS = new AtomicLong(); // owners that were not closed

  final long address;
  private final Content content;

  private Slot(Content content) {
    this.content = content;
    address = content.address;
    CLEANER.register(this, content);
  }

  /** A zeroed slot. Errors: ENOMEM. */
  static Slot take(Kind kind) {
    Slot slot = takeReleased(kind);
    kind.clear(slot.address);
    return slot;
  }

  /** A slot of which release alone is zero, for a struct that is moved in. Errors: ENOMEM. */
  static Slot takeReleased(Kind kind) {
    Slot slot = kind.pool.take();
    if (STACKS) {
      slot.content.created = new Throwable("created here");
    }
    return slot;
  }

  /** Returns a slot whose struct was released or moved. */
  void free() {
    content.kind.markReleased(address);
    content.kind.pool.put(this);
  }

  static void reportLeak(String title, Throwable created) {
    LEAKS.incrementAndGet();
    System.getLogger("io.github.fletching")
        .log(System.Logger.Level.WARNING, title + ": collected and not closed", created);
  }

  /** What stays of a slot that was collected. */
  private static final class Content implements Runnable {
    final Kind kind;
    final long address;
    volatile Throwable created;

    Content(Kind kind, long address) {
      this.kind = kind;
      this.address = address;
    }

    @Override
    public void run() {
      if (!kind.isReleased(address)) {
        reportLeak(kind.title, created);
        kind.releaseOnce(address);
      }
      kind.pool.recycle(address);
    }
  }

  /** The slots of a kind. Their memory is never freed. */
  static final class Pool {
    private static final VarHandle SPARE =
        Native.field(MethodHandles.lookup(), "spare", Slot.class);

    private final Kind kind;
    private final int step;
    private volatile Slot spare; // the one that is used again and again, without a lock
    private final ArrayDeque<Slot> free = new ArrayDeque<>();
    private final ArrayDeque<Long> addresses = new ArrayDeque<>();

    Pool(Kind kind) {
      this.kind = kind;
      step = (kind.size + 15) & ~15;
    }

    Slot take() {
      Slot slot = spare == null ? null : (Slot) SPARE.getAndSet(this, null);
      return slot != null ? slot : takeFree();
    }

    private synchronized Slot takeFree() {
      Slot slot = free.pollLast();
      if (slot != null) {
        return slot;
      }
      if (addresses.isEmpty()) {
        long slab = Native.allocate((long) SLAB * step, kind.title);
        for (int i = SLAB - 1; i >= 0; i--) {
          addresses.addLast(slab + (long) i * step);
        }
      }
      return new Slot(new Content(kind, addresses.pollLast()));
    }

    void put(Slot slot) {
      if (!SPARE.compareAndSet(this, null, slot)) {
        putFree(slot);
      }
    }

    private synchronized void putFree(Slot slot) {
      free.addLast(slot);
    }

    synchronized void recycle(long address) {
      addresses.addLast(address);
    }
  }
}
