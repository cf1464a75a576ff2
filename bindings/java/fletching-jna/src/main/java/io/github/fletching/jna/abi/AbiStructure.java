// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import com.sun.jna.Function;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.Structure;
import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.StructOffsets;
import java.util.List;

/** What the generated structs have in common. */
abstract class AbiStructure extends Structure {
  /** The class of the platform that runs this, as JNA sees it. */
  static final LayoutClass TARGET = LayoutClass.of(Native.POINTER_SIZE, new Probe().size() - 8);

  /** Its size tells how an int64_t member is aligned. */
  @Structure.FieldOrder({"before", "value"})
  public static final class Probe extends Structure {
    public byte before;
    public long value;
  }

  AbiStructure() {}

  AbiStructure(Pointer memory) {
    super(memory);
  }

  static int sizeOf(StructOffsets struct) {
    return struct.size(TARGET);
  }

  static long offsetOf(StructOffsets struct, String field) {
    return struct.offset(TARGET, field);
  }

  /** Calls a function pointer that came out of a struct, where its name is {@code name}. */
  static Object call(Class<?> result, Pointer function, String name, Object... arguments) {
    if (function == null) {
      throw new IllegalStateException(name + " is NULL");
    }
    return Function.getFunction(function).invoke(result, arguments);
  }

  /** Holds the layout that JNA derives from the fields against the one that Arrow specifies. */
  final void check(StructOffsets expected) {
    List<String> names = expected.fields();
    List<String> own = getFieldOrder();
    checkNumber(expected.name(), "number of fields", own.size(), names.size());
    checkNumber(expected.name(), "size", size(), expected.size(TARGET));
    checkNumber(expected.name(), "alignment", getStructAlignment(), expected.align(TARGET));
    for (int i = 0; i < own.size(); i++) {
      String field = expected.name() + "." + names.get(i);
      checkNumber(field, "offset", fieldOffset(own.get(i)), expected.offset(TARGET, names.get(i)));
    }
  }

  private static void checkNumber(String subject, String what, int own, int expected) {
    if (own != expected) {
      throw new AssertionError(
          String.format(
              "%s: %s is %d here, the Arrow specification says %d for %s targets",
              subject, what, own, expected, TARGET));
    }
  }

  // What the ABI tests ask.

  final int alignment() {
    return getStructAlignment();
  }

  final int offset(String field) {
    return fieldOffset(field);
  }
}
