// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

/**
 * Reads a struct that an owner keeps alive: the owner's struct or one below it. If the struct or a
 * parent is missing or was moved out, the view reads as an empty struct. After the owner is closed
 * or moved, reads throw an IllegalStateException.
 */
public abstract class View {
  final Owner owner;
  private final Kind kind;
  private final View parent; // null for the owner's own struct
  private final long address; // 0 if there is no struct; unused if parent is null

  View(Owner owner, View parent, long address) {
    this.owner = owner;
    this.parent = parent;
    this.kind = owner.kind.base();
    this.address = address;
  }

  /** Reads the memory of a live struct. */
  interface Read<T> {
    T at(long struct);
  }

  /** Reads while the owner is open; returns {@code empty} if the struct is missing or moved out. */
  final <T> T read(T empty, Read<T> field) {
    long own = owner.enter("read");
    try {
      return isGone() ? empty : field.at(parent == null ? own : address);
    } finally {
      owner.leave();
    }
  }

  final long readLong(long offset, long empty) {
    long own = owner.enter("read");
    try {
      return isGone() ? empty : C.getLong((parent == null ? own : address) + offset);
    } finally {
      owner.leave();
    }
  }

  /**
   * Whether the struct is missing or moved out, or the owner is closed.
   *
   * @return whether the struct is released
   */
  public final boolean isReleased() {
    if (owner.tryEnter() == 0) {
      return true;
    }
    boolean released = isGone();
    owner.leave();
    return released;
  }

  /**
   * Whether the struct is missing or moved out; the owner must be open. A parent that was moved out
   * may have freed it.
   */
  private boolean isGone() {
    return parent != null && (parent.isGone() || address == 0 || kind.isReleased(address));
  }

  /**
   * The number of children; 0 if the struct has no list of children, and for a count that is
   * negative or above 2^22.
   *
   * @return the number of children
   */
  public final int childCount() {
    return read(0, kind::childCount);
  }

  final long childAddress(int index) {
    int count = childCount();
    if (index < 0 || index >= count) {
      throw new IndexOutOfBoundsException(
          "child " + index + ": no such child: expected an index below " + count);
    }
    return read(0L, struct -> kind.child(struct, index));
  }

  final long dictionaryAddress() {
    return read(0L, kind::dictionary);
  }

  /** Whether the struct exists; it may be released. */
  final boolean exists() {
    return address != 0;
  }
}
