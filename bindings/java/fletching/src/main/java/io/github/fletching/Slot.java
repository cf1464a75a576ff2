// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.Cleaner;
import java.util.ArrayDeque;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Reusable C memory for one struct, so that memory and a cleaner are not created for each struct.
 * Only an owner references a slot in use. If an owner is collected without being closed, its slot
 * is collected too, and the cleaner releases the struct.
 */
final class Slot {
  private static final int SLAB = 64; // slots per slab
  private static final int MOST_EMPTY = 16; // empty slabs of a kind kept for reuse
  private static final int MOST_WARNINGS = 100;
  private static final boolean STACKS = Boolean.getBoolean("io.github.fletching.leakStacks");
  static final AtomicLong LEAKS = new AtomicLong(); // owners collected without being closed
  private static volatile Cleaner cleaner = Cleaner.create(); // null after shutdown
  private static volatile boolean closed; // slots cannot be taken

  final long address;
  private final Content content;

  private Slot(Content content) {
    this.content = content;
    address = content.address;
    content.cleanable = onCollected(this, content);
  }

  /** Runs the action when the object is collected. The action must not reference the object. */
  static Cleaner.Cleanable onCollected(Object object, Runnable action) {
    return checkUsable().register(object, action);
  }

  static Cleaner checkUsable() {
    Cleaner current = cleaner;
    if (closed || current == null) {
      throw new IllegalStateException("shutdown: called before: expected no further use");
    }
    return current;
  }

  /** Takes a zeroed slot. Throws ENOMEM. */
  static Slot take(Kind kind) {
    Slot slot = takeReleased(kind);
    kind.clear(slot.address);
    return slot;
  }

  /** Takes a slot in which only release is zeroed, for a struct that is moved in. Throws ENOMEM. */
  static Slot takeReleased(Kind kind) {
    Slot slot = kind.pool.take();
    if (STACKS) {
      slot.content.created = new Throwable("created here");
    }
    return slot;
  }

  /** Recycles a slot whose struct was released or moved. */
  void free() {
    content.kind.markReleased(address);
    content.kind.pool.put(this);
  }

  /** Counts a leak, and logs it up to a limit. Never throws. */
  static void reportLeak(String title, Throwable created) {
    long count = LEAKS.incrementAndGet();
    if (count > MOST_WARNINGS) {
      return;
    }
    String last = count < MOST_WARNINGS ? "" : "; later leaks are counted and not logged";
    try {
      System.getLogger("io.github.fletching")
          .log(System.Logger.Level.WARNING, title + ": collected and not closed" + last, created);
    } catch (Throwable ignored) {
      // The user's logger failed; the leak is counted.
    }
  }

  /** The number of slots in use. */
  static int countOpen() {
    int open = 0;
    for (Kind kind : Kind.values()) {
      open += kind.pool.countOpen();
    }
    return open;
  }

  /** Disables or enables the taking of slots. */
  static void close(boolean now) {
    closed = now;
  }

  /** Frees the memory of all slots and stops the cleaner. No slot may be in use. */
  static void shutdown() {
    cleaner = null;
    for (Kind kind : Kind.values()) {
      kind.pool.freeAll();
    }
  }

  /** The memory of several slots. */
  private static final class Slab {
    final long memory;
    final ArrayDeque<Slot> free = new ArrayDeque<>();
    final ArrayDeque<Long> addresses = new ArrayDeque<>(SLAB); // addresses without a slot
    int used;

    Slab(Kind kind, int step) {
      memory = Native.allocate((long) SLAB * step, kind.title);
      for (int i = SLAB - 1; i >= 0; i--) {
        addresses.addLast(memory + (long) i * step);
      }
    }

    void freeMemory() {
      for (Slot slot : free) {
        slot.content.dropped = true;
        slot.content.cleanable.clean();
      }
      C.free(memory);
    }
  }

  /** The part of a slot that outlives its collection. */
  private static final class Content implements Runnable {
    final Kind kind;
    final Slab slab;
    final long address;
    Cleaner.Cleanable cleanable;
    boolean dropped; // freed with its slab
    volatile Throwable created;

    Content(Kind kind, Slab slab, long address) {
      this.kind = kind;
      this.slab = slab;
      this.address = address;
    }

    @Override
    public void run() {
      if (dropped) {
        return;
      }
      boolean leaks = !kind.isReleased(address);
      if (leaks) {
        kind.releaseOnce(address);
      }
      kind.pool.recycle(this);
      if (leaks) {
        reportLeak(kind.title, created);
      }
    }
  }

  /** The slots of a kind. Slabs without a slot in use are freed, except for a reserve. */
  static final class Pool {
    private static final VarHandle SPARE =
        Native.field(MethodHandles.lookup(), "spare", Slot.class);

    private final Kind kind;
    private final int step;
    private volatile Slot spare; // reused without a lock
    private final Set<Slab> roomy = new LinkedHashSet<>(); // slabs with a free slot
    private int slots; // in use, including the spare slot
    private int empty; // empty slabs

    Pool(Kind kind) {
      this.kind = kind;
      step = (kind.size + 15) & ~15;
    }

    Slot take() {
      Slot slot = spare == null ? null : takeSpare();
      if (slot == null) {
        return takeFree();
      }
      if (closed) {
        put(slot);
        checkUsable();
      }
      return slot;
    }

    private Slot takeSpare() {
      return (Slot) SPARE.getAndSet(this, null);
    }

    private synchronized Slot takeFree() {
      checkUsable();
      if (roomy.isEmpty()) {
        roomy.add(new Slab(kind, step));
        empty++;
      }
      Slab slab = roomy.iterator().next();
      Slot slot = slab.free.pollLast();
      if (slot == null) {
        slot = new Slot(new Content(kind, slab, slab.addresses.getLast()));
        slab.addresses.removeLast();
      }
      slots++;
      empty -= slab.used == 0 ? 1 : 0;
      if (++slab.used == SLAB) {
        roomy.remove(slab);
      }
      return slot;
    }

    void put(Slot slot) {
      if (!SPARE.compareAndSet(this, null, slot)) {
        putFree(slot);
      }
    }

    private synchronized void putFree(Slot slot) {
      slot.content.slab.free.addLast(slot);
      give(slot.content.slab);
    }

    synchronized void recycle(Content content) {
      content.slab.addresses.addLast(content.address);
      give(content.slab);
    }

    private void give(Slab slab) {
      slots--;
      roomy.add(slab);
      if (--slab.used > 0) {
        return;
      }
      if (empty < MOST_EMPTY) {
        empty++;
      } else {
        roomy.remove(slab);
        slab.freeMemory();
      }
    }

    synchronized int countOpen() {
      return slots - (spare == null ? 0 : 1);
    }

    synchronized void freeAll() {
      Slot last = takeSpare();
      if (last != null) {
        putFree(last);
      }
      roomy.forEach(Slab::freeMemory);
      roomy.clear();
    }
  }
}
