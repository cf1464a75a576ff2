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
 * Owner of one struct of the C interfaces or of one tensor. Close it, or pass the struct on with
 * {@link #moveTo}.
 *
 * <p>A move is a bitwise copy that leaves the source released, as in the C data interface. The data
 * read by the accessors belongs to the producer and is valid while the owner is open. Accessors
 * only read memory and call no callback. After {@code close} or a move, including a move by foreign
 * code, they throw an IllegalStateException. Several threads may read at once.
 *
 * <p>If an owner becomes unreachable without being closed, a cleaner releases it and counts a leak:
 * the release comes at an unknown time and holds device memory too long. The system property {@code
 * io.github.fletching.leakStacks=true} adds the owner's creation stack trace to the warning.
 *
 * <p>See "Memory management" in the Arrow C data interface.
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
  private volatile int readers; // reads in progress; CHANGING is added during a change below

  Owner(Kind kind, Slot slot) {
    this.kind = kind;
    SLOT.setRelease(this, slot); // avoids the fence of a volatile write
  }

  /** Moves the struct at an address into a slot. Throws EINVAL for NULL or a released struct. */
  static Slot imported(Kind kind, long address) {
    if (address == 0) {
      throw FletchingException.invalid("wrap: " + kind.title + " is NULL: expected an address");
    }
    if (kind.isReleased(address)) {
      throw FletchingException.invalid(
          "wrap: " + kind.title + " is released: expected a live struct");
    }
    Slot slot = Slot.takeReleased(kind);
    kind.move(address, slot.address);
    Handover.IMPORT.validate(kind, slot.address);
    return slot;
  }

  /** Calls a C function to fill a zeroed slot. Throws EINVAL if it does not. */
  static Slot filled(Kind kind, LongConsumer function) {
    Slot slot = Slot.take(kind);
    boolean live = false;
    try {
      function.accept(slot.address);
      live = !kind.isReleased(slot.address);
    } finally {
      if (!live) { // after an error the contents are unspecified and not released
        slot.free();
      }
    }
    if (!live) {
      throw FletchingException.invalid(
          "filledBy: " + kind.title + " is released: expected the function to fill it");
    }
    return slot;
  }

  /**
   * The address of the struct, for a C function that reads the struct or moves it out. It is valid
   * until the owner is closed: keep the owner reachable until the function has returned.
   *
   * @return the address
   * @throws IllegalStateException after close, or if foreign code has moved the struct out
   * @throws FletchingException EBUSY for a stream during a call
   */
  public long address() {
    return open("address");
  }

  /**
   * Moves the struct to an address, which is overwritten. The receiver must release the struct; the
   * owner is closed.
   *
   * @param address the destination
   * @throws IllegalStateException after close, or if foreign code has moved the struct out
   * @throws FletchingException EINVAL for address 0 and for the struct's own address; EBUSY for a
   *     stream during a call
   */
  public void moveTo(long address) {
    if (address == 0) {
      throw FletchingException.invalid("moveTo: address is NULL: expected room for a struct");
    }
    if (address == live("moveTo").address) {
      throw FletchingException.invalid(
          "moveTo: address is the owner's own: expected room for another struct");
    }
    Slot source = takeSlot("moveTo");
    Handover.EXPORT.validate(kind, source.address);
    move(source, address);
  }

  /** Moves the struct in a callback of a stream, which is validated as a whole. */
  final void moveWithin(long address) {
    move(takeSlot("moveTo"), address);
  }

  private void move(Slot source, long address) {
    kind.move(source.address, address);
    source.free();
  }

  /**
   * Whether the struct was closed, moved, or moved out by foreign code.
   *
   * @return whether the struct is released
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
   * Releases the struct on the calling thread. Has no effect after a close or a move. Thread-safe.
   * Waits for reads in progress on other threads; later reads throw an IllegalStateException.
   */
  @Override
  public void close() {
    close(null);
  }

  /** Closes the owner; {@code ended} as for {@link Kind#releaseOnce(long, Deque)}. */
  void close(Deque<Object> ended) {
    Slot found = swap(null);
    if (found != null) {
      awaitReaders(0);
      kind.releaseOnce(found.address, ended);
      found.free();
    }
  }

  /**
   * The number of owners that were collected without being closed.
   *
   * @return the number of owners
   */
  public static long leaks() {
    return Slot.LEAKS.get();
  }

  /**
   * The number of structs that C released during JVM shutdown. They leak: their objects are not
   * closed, because the classes needed for that may be gone. For a release after the end of the JVM
   * see the README.
   *
   * @return the number of structs
   */
  public static long lateReleases() {
    return Exported.LATE.get();
  }

  /**
   * Frees all resources that keep this library's class loader reachable: C callbacks, the memory of
   * closed owners, the cleaner and the shutdown hook. Use it if the application is unloaded from a
   * running JVM. No other library code may run during or after this call.
   *
   * <p>The functions of the raw layer live as long as the process and are not freed. JNA cannot
   * free functions: its engine keeps the class loader reachable. The threads of {@link
   * DeviceArray#releaseAfter} end a second after the last release.
   *
   * @throws IllegalStateException if an owner is open, a struct is exported, a release of {@link
   *     DeviceArray#releaseAfter} is running, or this method was called before; no resource is then
   *     freed
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

  /** Moves a struct below this one out. A change must be in progress. */
  void moveBelow(long own, long below, long to) {
    kind.move(below, to);
  }

  final Slot swap(Slot next) {
    return (Slot) SLOT.getAndSet(this, next);
  }

  /** Takes the slot. The caller frees it after moving the struct. */
  final Slot takeSlot(String operation) {
    Slot found = isReleased() ? null : swap(null);
    if (found == null) { // or a concurrent call has taken it
      throw isReleased() ? closed(operation) : missing(operation);
    }
    awaitReaders(0);
    return found;
  }

  /** Moves the struct into the owner that {@code make} returns. After an error it stays here. */
  final <T extends Owner> T movedBy(String operation, Function<Slot, T> make) {
    Slot taken = takeSlot(operation);
    try {
      return make.apply(taken);
    } catch (Throwable noMemory) {
      swap(taken);
      throw noMemory;
    }
  }

  /** Returns the address of a live struct. */
  final long open(String operation) {
    long struct = enter(operation);
    leave();
    return struct;
  }

  // --- Concurrent reads and changes. The pairs do not nest.

  /**
   * Begins a read and returns the address of the live struct. Until {@link #leave}, other threads
   * wait before they release, move or change the struct.
   */
  final long enter(String operation) {
    long struct = tryEnter();
    if (struct == 0) {
      throw gone(operation);
    }
    return struct;
  }

  /** Begins a read, or returns 0 where {@link #enter} throws. */
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

  /** Begins a change of the structs below. Until {@link #endChange}, other threads wait to read. */
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

  /** The exception for a missing slot. */
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
