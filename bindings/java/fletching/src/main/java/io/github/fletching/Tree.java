// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;

/** The structs below a struct, which may be a foreign one. */
final class Tree {
  /** How many levels of structs there may be: they are walked by recursion. */
  static final int MOST_LEVELS = 256;

  private static final long FORMAT = Kind.SCHEMA.offset("format");

  private final Kind kind;
  private List<Long> live; // null where a released struct is an error
  private int structs;

  private Tree(Kind kind) {
    this.kind = kind.base();
  }

  static void attach(Owner owner, Object object) {
    if (owner.isReleased()) {
      throw Owner.closed("attach");
    }
    Share.Hook.attach(owner.kind.base(), owner.live("attach").address, object);
    Reference.reachabilityFence(owner);
  }

  /** The address of a child to move out. */
  static long childToTake(Owner parent, int index) {
    if (parent.isReleased()) {
      throw Owner.closed("take_child");
    }
    long struct = parent.live("take_child").address;
    int count = parent.kind.childCount(struct);
    if (index < 0 || index >= count) {
      throw FletchingException.invalid(
          "take_child: child " + index + ": no such child: expected an index below " + count);
    }
    return toTake(parent, parent.kind.child(struct, index), "take_child: child " + index);
  }

  static long dictionaryToTake(Owner parent) {
    if (parent.isReleased()) {
      throw Owner.closed("take_dictionary");
    }
    long struct = parent.live("take_dictionary").address;
    return toTake(parent, parent.kind.dictionary(struct), "take_dictionary");
  }

  private static long toTake(Owner parent, long below, String what) {
    if (below == 0) {
      throw FletchingException.invalid(what + ": NULL: expected a struct");
    }
    if (parent.kind.isReleased(below)) {
      throw FletchingException.invalid(what + ": released or moved out: expected a live struct");
    }
    return below;
  }

  // --- Views

  /** How many structs there are from here downwards, each of which can be shown to others. */
  static int count(String operation, Kind kind, long root) {
    Tree tree = new Tree(kind);
    String problem = tree.walk(root, 0);
    if (problem != null) {
      throw FletchingException.invalid(operation + ": the struct or a descendant " + problem);
    }
    return tree.structs;
  }

  /** An array and all below it that are not released. */
  static List<Long> liveArrays(String operation, long root) {
    Tree tree = new Tree(Kind.ARRAY);
    tree.live = new ArrayList<>();
    String problem = tree.walk(root, 0);
    if (problem != null) {
      throw FletchingException.invalid(operation + ": the array or a descendant " + problem);
    }
    return tree.live;
  }

  private String walk(long struct, int depth) {
    structs++;
    if (struct == 0) {
      return "is NULL";
    }
    if (depth == MOST_LEVELS) {
      return "is nested too deep: expected at most " + MOST_LEVELS + " levels";
    }
    if (structs > Kind.MOST_STRUCTS) {
      return "is one of too many: expected at most " + Kind.MOST_STRUCTS;
    }
    if (live != null) {
      if (kind.isReleased(struct)) {
        return null;
      }
      live.add(struct);
    }
    String problem = problem(struct);
    int children = problem != null ? 0 : kind.childCount(struct);
    for (int i = 0; i < children && problem == null; i++) {
      problem = walk(kind.child(struct, i), depth + 1);
    }
    if (problem == null && kind.dictionary(struct) != 0) {
      problem = walk(kind.dictionary(struct), depth + 1);
    }
    return problem;
  }

  private String problem(long struct) {
    if (kind.isReleased(struct)) {
      return "is released or moved out";
    }
    if (kind == Kind.SCHEMA && C.getAddress(struct + FORMAT) == 0) {
      return "has format NULL";
    }
    long count = C.getLong(struct + kind.childCount);
    if (count < 0 || count > Kind.MOST_STRUCTS) {
      return "has n_children out of range: expected 0 to " + Kind.MOST_STRUCTS + ", got " + count;
    }
    return count != kind.childCount(struct)
        ? "has children NULL: expected a list of " + count
        : null;
  }

  /** Fills the target, and what is below it in the block, with what the source shows. */
  static void copy(Kind kind, long source, long target, Block block) {
    C.copy(source, target, kind.size);
    block.adopt(kind, target);
    int count = kind.childCount(source);
    long child = block.addChildren(target, count);
    for (int i = 0; i < count; i++) {
      copy(kind, kind.child(source, i), child + (long) i * kind.size, block);
    }
    long dictionary = kind.dictionary(source);
    if (dictionary != 0) {
      copy(kind, dictionary, block.addDictionary(target), block);
    }
  }
}
