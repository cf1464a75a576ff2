// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import java.util.ArrayList;
import java.util.List;
import java.util.function.LongUnaryOperator;

/** The tree of structs at a struct, which may be foreign. */
final class Tree {
  /** The maximum number of levels, because trees are walked recursively. */
  static final int MOST_LEVELS = 256;

  private final Kind kind;
  private List<Long> live; // null if a released struct is an error
  private int structs;

  private Tree(Kind kind) {
    this.kind = kind.base();
  }

  static void attach(Owner owner, Object object) {
    long struct = owner.beginChange("attach");
    try {
      Share.Hook.attach(owner.kind.base(), struct, object);
    } finally {
      owner.endChange();
    }
  }

  /** Returns the address of a child, which may be NULL. Throws EINVAL for an invalid index. */
  static long child(String operation, Kind kind, long struct, int index) {
    int count = kind.childCount(struct);
    if (index < 0 || index >= count) {
      throw FletchingException.invalid(
          operation + ": child " + index + ": no such child: expected an index below " + count);
    }
    return kind.child(struct, index);
  }

  /** Moves a child out of its parent. Throws EINVAL if it is NULL or released. */
  static Slot takeChild(Owner parent, int index) {
    return take(
        parent,
        "takeChild",
        " child " + index + ":",
        struct -> child("takeChild", parent.kind, struct, index));
  }

  static Slot takeDictionary(Owner parent) {
    return take(parent, "takeDictionary", "", parent.kind::dictionary);
  }

  private static Slot take(Owner parent, String operation, String what, LongUnaryOperator find) {
    long struct = parent.beginChange(operation);
    try {
      long below = find.applyAsLong(struct);
      if (below == 0) {
        throw FletchingException.invalid(operation + ":" + what + " NULL: expected a struct");
      }
      if (parent.kind.isReleased(below)) {
        throw FletchingException.invalid(
            operation + ":" + what + " released or moved out: expected a live struct");
      }
      Slot taken = Slot.take(parent.kind);
      parent.moveBelow(struct, below, taken.address);
      return taken;
    } finally {
      parent.endChange();
    }
  }

  /** Describes the limit that is exceeded; null for none. */
  static String excess(int depth, int structs) {
    if (depth == MOST_LEVELS) {
      return "nested too deep: expected at most " + MOST_LEVELS + " levels";
    }
    String many = "one of too many: expected at most " + Kind.MOST_STRUCTS + " structs";
    return structs > Kind.MOST_STRUCTS ? many : null;
  }

  // --- Views

  /** Counts the structs of a tree. Throws EINVAL unless all can be shared. */
  static int count(String operation, Kind kind, long root) {
    Tree tree = new Tree(kind);
    tree.walk(operation + ": the struct", root);
    return tree.structs;
  }

  /** Lists an array and its descendants, except for released ones. */
  static List<Long> liveArrays(String operation, long root) {
    Tree tree = new Tree(Kind.ARRAY);
    tree.live = new ArrayList<>();
    tree.walk(operation + ": the array", root);
    return tree.live;
  }

  private void walk(String what, long root) {
    String problem = walk(root, 0);
    if (problem != null) {
      throw FletchingException.invalid(what + " or a descendant " + problem);
    }
  }

  private String walk(long struct, int depth) {
    structs++;
    if (struct == 0) {
      return "is NULL";
    }
    String excess = excess(depth, structs);
    if (excess != null) {
      return "is " + excess;
    }
    if (live != null) {
      if (kind.isReleased(struct)) {
        return null;
      }
      live.add(struct);
    }
    String problem = problem(struct);
    int children = kind.childCount(struct);
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
    if (kind == Kind.SCHEMA && C.getAddress(struct + Fields.SCHEMA_FORMAT) == 0) {
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

  /** Copies the source to the target, and the structs below to the block. */
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
