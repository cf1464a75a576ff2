// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.util.function.Function;
import java.util.function.LongUnaryOperator;

/**
 * Shares a schema, an array, or a device array with its event, without copying a text or a buffer.
 *
 * <p>The struct is released when this is closed, and the last struct that it returned and the last
 * child that was moved out of one are released, on the thread where that happens. What {@link
 * #column} and {@link #view} return is a struct like any other: its consumer may move it, release
 * it and move children out; others do not notice. Several threads may use and close this at once.
 *
 * @param <T> the owner of the struct
 */
public final class Shared<T extends Owner> implements AutoCloseable {
  final T owner; // its struct is a use of the share, and is never moved on
  private final Share share;
  private final Function<Slot, T> make;

  private Shared(T owner, Share share, Function<Slot, T> make) {
    this.owner = owner;
    this.share = share;
    this.make = make;
  }

  /** Moves the struct out of an owner. */
  static <T extends Owner> Shared<T> of(T source, Function<Slot, T> make) {
    Share share;
    long struct = source.beginChange("share");
    try {
      share = Share.begin(source.kind, struct);
    } finally {
      source.endChange();
    }
    return new Shared<>(source.movedBy("share", make), share, make);
  }

  /**
   * The number of children.
   *
   * @return the number of children
   */
  public int columnCount() {
    int count = owner.kind.childCount(owner.enter("read"));
    owner.leave();
    return count;
  }

  /**
   * A child as a struct of its own; of a device array with its device and event.
   *
   * @param index the index, from 0
   * @return a child as a struct of its own
   * @throws FletchingException EINVAL when there is no such child, when it or one below it was
   *     moved out before, or is malformed: NULL, a schema without a format, n_children negative,
   *     above 2^22 or without a list, nested deeper than 256 levels, more than 2^22 structs; ENOMEM
   */
  public T column(int index) {
    return show("column", struct -> Tree.child("column", owner.kind, struct, index));
  }

  /**
   * All of it as a struct of its own. Errors: as {@link #column}.
   *
   * @return all of it as a struct of its own
   */
  public T view() {
    return show("view", struct -> struct);
  }

  private T show(String operation, LongUnaryOperator find) {
    long own = owner.enter(operation);
    try {
      return show(own, find.applyAsLong(own));
    } finally {
      owner.leave();
    }
  }

  private T show(long own, long struct) {
    Kind base = owner.kind.base();
    int structs = Tree.count("view", base, struct);
    Slot slot = Slot.take(owner.kind);
    Block block = new Block(base, structs, 0, 0, share);
    share.use();
    Tree.copy(base, struct, slot.address, block);
    if (owner.kind == Kind.DEVICE_ARRAY) {
      DeviceArray.copyDevice(own, slot.address);
    }
    return make.apply(slot);
  }

  /**
   * Whether this was closed.
   *
   * @return whether this was closed
   */
  public boolean isReleased() {
    return owner.isReleased();
  }

  /** Gives up the struct, which is released with its last user. */
  @Override
  public void close() {
    owner.close();
  }
}
