// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.util.function.Function;
import java.util.function.LongUnaryOperator;

/**
 * Shares a schema, an array, or a device array with its event, without copying strings or buffers.
 *
 * <p>The struct is released when this object is closed, and all structs that it returned and all
 * children moved out of them are released, on the thread of the last release. {@link #column} and
 * {@link #view} return ordinary structs: a consumer may move and release them and move their
 * children out, without affecting other consumers. Thread-safe.
 *
 * @param <T> the owner type of the struct
 */
public final class Shared<T extends Owner> implements AutoCloseable {
  final T owner; // its struct is a user of the share and is never moved
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
   * A child as a separate struct; for a device array, with its device and event.
   *
   * @param index the index, from 0
   * @return the child
   * @throws FletchingException EINVAL if the child does not exist, or if it or a struct below it
   *     was moved out or is malformed: NULL, a schema without a format, n_children negative, above
   *     2^22 or without a list, nested deeper than 256 levels, more than 2^22 structs; ENOMEM
   */
  public T column(int index) {
    return show("column", struct -> Tree.child("column", owner.kind, struct, index));
  }

  /**
   * The whole struct as a separate struct. Errors: as {@link #column}.
   *
   * @return the struct
   */
  public T view() {
    return show("view", struct -> struct);
  }

  private T show(String operation, LongUnaryOperator find) {
    long own = owner.enter(operation);
    try {
      return show(operation, own, find.applyAsLong(own));
    } finally {
      owner.leave();
    }
  }

  private T show(String operation, long own, long struct) {
    Kind base = owner.kind.base();
    int structs = Tree.count(operation, base, struct);
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
   * Whether this object is closed.
   *
   * @return whether this object is closed
   */
  public boolean isReleased() {
    return owner.isReleased();
  }

  /** Ends this use of the struct, which is released with its last user. */
  @Override
  public void close() {
    owner.close();
  }
}
