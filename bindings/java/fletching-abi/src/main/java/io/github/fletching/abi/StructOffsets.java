// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Offsets of the fields of one struct, in bytes, for each class of target. */
public final class StructOffsets {
  private final String name;
  private final Map<String, int[]> fields = new LinkedHashMap<>();
  private int[] sizes;
  private int[] aligns;

  StructOffsets(String name) {
    this.name = name;
  }

  // Each row lists its numbers in the order of LayoutClass.

  StructOffsets size(int... byTarget) {
    sizes = byTarget;
    return this;
  }

  StructOffsets align(int... byTarget) {
    aligns = byTarget;
    return this;
  }

  StructOffsets field(String field, int... byTarget) {
    fields.put(field, byTarget);
    return this;
  }

  /**
   * The name in C, such as {@code ArrowArray}.
   *
   * @return the name
   */
  public String name() {
    return name;
  }

  /**
   * The names of the fields in C, in order.
   *
   * @return a new list of the names
   */
  public List<String> fields() {
    return new ArrayList<>(fields.keySet());
  }

  /**
   * The size of the struct.
   *
   * @param target the class of target
   * @return the size, in bytes
   */
  public int size(LayoutClass target) {
    return sizes[target.ordinal()];
  }

  /**
   * The alignment of the struct.
   *
   * @param target the class of target
   * @return the alignment, in bytes
   */
  public int align(LayoutClass target) {
    return aligns[target.ordinal()];
  }

  /**
   * The offset of a field.
   *
   * @param target the class of target
   * @param field the name of the field in C
   * @return the offset, in bytes
   * @throws IllegalArgumentException if the struct has no such field
   */
  public int offset(LayoutClass target, String field) {
    int[] offsets = fields.get(field);
    if (offsets == null) {
      throw new IllegalArgumentException(name + " has no field " + field);
    }
    return offsets[target.ordinal()];
  }
}
