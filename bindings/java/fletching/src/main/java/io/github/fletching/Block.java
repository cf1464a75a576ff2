// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

import java.util.Deque;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A C allocation with everything below an exported struct: the structs, the child pointer lists,
 * the buffer lists and strings. It counts its structs, including the root, which is in a slot,
 * because a consumer may move out any of them. The last release frees the block.
 */
final class Block extends Exported {
  private final Kind kind;
  private final AtomicInteger structs;
  private final Object object; // user object or share; null for none
  private final long memory;
  Object kept; // reachable until the release

  // Next free positions while the block is filled.
  private long nextStruct;
  private long nextEntry;
  private long nextAddress;
  private long nextByte;

  /** Allocates space for structs (including the root), addresses and bytes. Throws ENOMEM. */
  Block(Kind kind, int structs, int addresses, long bytes, Object object) {
    this.kind = kind.base();
    this.structs = new AtomicInteger(structs);
    this.object = object;
    long below = structs - 1L;
    long lists = (below + addresses) * POINTER;
    long size = below * this.kind.size + ((lists + 7) & ~7) + bytes;
    memory = size == 0 ? 0 : C.allocate(size);
    if (size != 0 && memory == 0) {
      forget();
      throw FletchingException.noMemory(kind.title);
    }
    nextStruct = memory;
    nextEntry = memory + below * this.kind.size;
    nextAddress = nextEntry + below * POINTER;
    nextByte = nextEntry + ((lists + 7) & ~7);
  }

  /** Lists contiguous children in a struct. Returns the address of the first. */
  long addChildren(long parent, int count) {
    long first = nextStruct;
    if (count > 0) {
      C.putLong(parent + kind.childCount, count);
      C.putAddress(parent + kind.children, nextEntry);
    }
    for (int i = 0; i < count; i++) {
      C.putAddress(nextEntry, nextStruct);
      nextEntry += POINTER;
      nextStruct += kind.size;
    }
    return first;
  }

  long addDictionary(long parent) {
    long struct = nextStruct;
    C.putAddress(parent + kind.dictionary, struct);
    nextEntry += POINTER;
    nextStruct += kind.size;
    return struct;
  }

  long addAddresses(long[] values) {
    long first = nextAddress;
    for (long value : values) {
      C.putAddress(nextAddress, value);
      nextAddress += POINTER;
    }
    return values.length == 0 ? 0 : first;
  }

  /** Aligns the bytes to 8, for consumers that read integers in metadata. */
  long addBytes(byte[] bytes) {
    long first = nextByte;
    C.write(first, bytes);
    nextByte += padded(bytes.length);
    return first;
  }

  static long padded(long size) {
    return (size + 7) & ~7;
  }

  // --- Release

  @Override
  void release(Kind kind, long struct, Deque<Object> ended) {
    kind.markReleased(struct);
    leave(1 + releaseBelow(struct, ended), ended);
  }

  /** Returns the number of released structs of this block. Unchanged ones need no callback. */
  private int releaseBelow(long struct, Deque<Object> ended) {
    int released = 0;
    int count = kind.childCount(struct);
    for (int i = 0; i < count; i++) {
      released += releaseInBlock(kind.child(struct, i), ended);
    }
    return released + releaseInBlock(kind.dictionary(struct), ended);
  }

  private int releaseInBlock(long struct, Deque<Object> ended) {
    if (struct == 0) {
      return 0;
    }
    if (!owns(kind, struct)) {
      kind.releaseOnce(struct, ended);
      return 0;
    }
    kind.markReleased(struct);
    return 1 + releaseBelow(struct, ended);
  }

  private void leave(int released, Deque<Object> ended) {
    if (structs.addAndGet(-released) > 0) {
      return;
    }
    forget();
    if (object != null) {
      ended.add(object);
    }
    if (memory != 0) {
      C.free(memory);
    }
  }
}
