// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.engine.Handles;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Deque;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import java.util.function.LongConsumer;

/**
 * Owns one struct of the C interfaces or one tensor. Close it, or move it on with {@link #moveTo}.
 *
 * <p>A move is what the C data interface calls a move: a bitwise copy, after which the source is
 * released. What the accessors read belongs to the producer and lives as long as the owner is open;
 * they are reads of memory and call nothing. After {@code close} or a move, also one by foreign
 * code, they throw an IllegalStateException. Any thread may read, several at once.
 *
 * <p>An owner that becomes unreachable and was not closed is released by a cleaner, and counted as
 * a leak: it happens at an unknown time, and memory of a device lives too long. The system property
 * {@code io.github.fletching.leakStacks=true} adds to the warning where the owner was made.
 *
 * <p>Text: Arrow C data interface, "Memory management".
 */
public abstract class Owner implements AutoCloseable {
  private static final VarHandle SLOT = Native.field(MethodHandles.lookup(), "slot", Slot.class);
  private static final VarHandle READERS =
      Native.field(MethodHandles.lookup(), "readers", int.class);
  private static final int CHANGING = Integer.MIN_VALUE;
  private static final int SPINS = 1000;
  private static final long PAUSE = 20_000; // nanoseconds

  final Kind kind;
  private volatile Slot slot;
  private volatile int readers; // in a read now; CHANGING is added while below is changed

  Owner(Kind kind, Slot slot) {
    this.kind = kind;
    SLOT.setRelease(this, slot); // without the fence of a volatile write
  }

  /** Moves the struct at an address into a slot. */
  static Slot imported(Kind kind, long address) {
    if (address == 0) {
      throw FletchingException.invalid("import: " + kind.title + " is NULL: expected an address");
    }
    if (kind.isReleased(address)) {
      throw FletchingException.invalid(
          "import: " + kind.title + " is released: expected a live struct");
    }
    Slot slot = Slot.takeReleased(kind);
    kind.move(address, slot.address);
    return slot;
  }

  /** Has a zeroed slot filled by a function of C. */
  static Slot filled(Kind kind, LongConsumer function) {
    Slot slot = Slot.take(kind);
    boolean live = false;
    try {
      function.accept(slot.address);
      live = !kind.isReleased(slot.address);
    } finally {
      if (!live) { // an error leaves the contents unspecified, so nothing is released
        slot.free();
      }
    }
    if (!live) {
      throw FletchingException.invalid(
          "fill: " + kind.title + " is released: expected the function to fill it");
    }
    return slot;
  }

  /**
   * The address of the struct, for a callee in C that reads it or moves it out. It is valid until
   * the owner is closed: keep the owner reachable until the callee has returned.
   *
   * @return the address
   * @throws IllegalStateException after close, or when foreign code has moved the struct out
   * @throws FletchingException EBUSY for a stream during a call
   */
  public long address() {
    return open("address");
  }

  /**
   * Moves the struct to an address, which is overwritten. It is the receiver's to release from now
   * on; the owner is closed.
   *
   * @param address the address of a struct
   * @throws IllegalStateException after close, or when foreign code has moved the struct out
   * @throws FletchingException EINVAL for an address of 0, and for the struct's own address; EBUSY
   *     for a stream during a call
   */
  public void moveTo(long address) {
    if (address == 0) {
      throw FletchingException.invalid("export: address is NULL: expected room for a struct");
    }
    if (address == live("export").address) {
      throw FletchingException.invalid(
          "export: address is the owner's own: expected room for another struct");
    }
    Slot source = takeSlot("export");
    kind.move(source.address, address);
    source.free();
  }

  /**
   * Whether there is nothing to release: closed, moved, or moved out by foreign code.
   *
   * @return whether there is nothing to release
   */
  public boolean isReleased() {
    return slot == null || isMovedOut();
  }

  /** Whether foreign code has moved the struct out; false while a call has the slot. */
  final boolean isMovedOut() {
    join();
    Slot found = slot;
    boolean moved = found != null && kind.isReleased(found.address);
    leave();
    return moved;
  }

  /**
   * Releases the struct on the calling thread. It does nothing when the struct was closed or moved
   * before. Several threads may call it at once. It waits for the reads that other threads have
   * begun; a later one throws an IllegalStateException.
   */
  @Override
  public void close() {
    close(null);
  }

  /** The same, as {@link Kind#releaseOnce(long, Deque)}. */
  void close(Deque<Object> ended) {
    Slot found = swap(null);
    if (found != null) {
      awaitReaders(0);
      kind.releaseOnce(found.address, ended);
      found.free();
    }
  }

  /**
   * How many owners were collected that had not been closed.
   *
   * @return how many owners were collected that had not been closed
   */
  public static long leaks() {
    return Slot.LEAKS.get();
  }

  /**
   * How many structs C has released while the JVM shut down. They leak: their objects are not
   * closed, because the classes that would do so may be gone. See the README for a release after
   * the end of the JVM.
   *
   * @return how many structs C has released while the JVM shut down
   */
  public static long lateReleases() {
    return Exported.LATE.get();
  }

  /**
   * Frees what keeps the class loader of this library reachable: the functions that C calls, the
   * memory of closed owners, the cleaner and the shutdown hook. For an application that is unloaded
   * from a JVM that goes on. Nothing else of the library may run, now or later.
   *
   * <p>The functions of the raw layer, which live as long as the process, are not freed, and JNA
   * frees no function: its engine keeps the class loader. The threads of {@link
   * DeviceArray#releaseAfter} end a second after the last release.
   *
   * @throws IllegalStateException if an owner is open, a struct is exported, a release of {@link
   *     DeviceArray#releaseAfter} runs, or this was called before. Frees nothing then
   */
  public static void shutdown() {
    Slot.checkUsable();
    Slot.close(true);
    int open = Slot.countOpen();
    int exported = Handles.count();
    long running =
        Reaper.counts().running(); // they call the runtime after the last owner is closed
    if (open + exported + running > 0) {
      Slot.close(false);
      throw new IllegalStateException(
          "shutdown: "
              + open
              + " owners are open, and C may release "
              + exported
              + " objects, and "
              + running
              + " releases run: expected none");
    }
    Slot.shutdown();
    AsyncAbi.freeBlocks();
    Exported.removeHook();
    C.close();
  }

  /** Moves a struct below this one out, within a change. */
  void moveBelow(long own, long below, long to) {
    kind.move(below, to);
  }

  final Slot swap(Slot next) {
    return (Slot) SLOT.getAndSet(this, next);
  }

  /** Makes the slot the caller's, who frees it when the struct was moved. */
  final Slot takeSlot(String operation) {
    Slot found = isReleased() ? null : swap(null);
    if (found == null) { // or a call on another thread has it since
      throw isReleased() ? closed(operation) : missing(operation);
    }
    awaitReaders(0);
    return found;
  }

  /** Moves the struct into the owner that {@code make} returns; after an error it is still here. */
  final <T extends Owner> T movedBy(String operation, Function<Slot, T> make) {
    Slot taken = takeSlot(operation);
    try {
      return make.apply(taken);
    } catch (Throwable noMemory) {
      swap(taken);
      throw noMemory;
    }
  }

  /** The address of a struct that nothing has released or moved out. */
  final long open(String operation) {
    long struct = enter(operation);
    leave();
    return struct;
  }

  // --- Reads and changes of several threads. The pairs do not nest.

  /**
   * Begins a read: until {@link #leave}, other threads wait before they release, move or change it.
   * Returns the address of the struct, which is live.
   */
  final long enter(String operation) {
    long struct = tryEnter();
    if (struct == 0) {
      throw gone(operation);
    }
    return struct;
  }

  /** Returns 0 and begins no read where {@link #enter} throws. */
  final long tryEnter() {
    join();
    long struct = liveStruct();
    if (struct == 0) {
      leave();
    }
    return struct;
  }

  private void join() {
    while ((int) READERS.getAndAdd(this, 1) < 0) {
      leave();
      awaitChange();
    }
  }

  /** Ends a read. */
  final void leave() {
    READERS.getAndAdd(this, -1);
  }

  /** Begins a change of the structs below: until {@link #endChange}, other threads wait to read. */
  final long beginChange(String operation) {
    while ((int) READERS.getAndBitwiseOr(this, CHANGING) < 0) {
      awaitChange();
    }
    awaitReaders(CHANGING);
    long struct = liveStruct();
    if (struct == 0) {
      endChange();
      throw gone(operation);
    }
    return struct;
  }

  final void endChange() {
    READERS.getAndBitwiseAnd(this, ~CHANGING);
  }

  private long liveStruct() {
    Slot found = slot;
    return found == null || kind.isReleased(found.address) ? 0 : found.address;
  }

  private RuntimeException gone(String operation) {
    return slot == null ? missing(operation) : closed(operation);
  }

  private void awaitChange() {
    for (int i = 0; readers < 0; i++) {
      pause(i);
    }
  }

  private void awaitReaders(int rest) {
    for (int i = 0; readers != rest; i++) {
      pause(i);
    }
  }

  private static void pause(int times) {
    if (times < SPINS) {
      Thread.onSpinWait();
    } else {
      LockSupport.parkNanos(PAUSE);
    }
  }

  final Slot live(String operation) {
    Slot found = slot;
    if (found == null) {
      throw missing(operation);
    }
    return found;
  }

  /** Why there is no slot. */
  RuntimeException missing(String operation) {
    return closed(operation);
  }

  static IllegalStateException closed(String operation) {
    return new IllegalStateException(operation + ": closed or moved: expected a live struct");
  }

  @Override
  public String toString() {
    return getClass().getSimpleName() + (isReleased() ? "[released]" : "[live]");
  }
}
