// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing;

import com.sun.jna.IntegerType;
import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;

/**
 * The layout of upstream's headers as a C compiler sees it; tests/oracle/oracle.h defines every
 * function.
 *
 * <p>A check returns null if both sides agree, otherwise the oracle's line. The oracle tracks one
 * call at a time: use it from one thread at a time.
 */
public final class Oracle {
  private static final int CAPACITY = 1024;

  private final Functions functions = NativeLibraries.load("oracle", Functions.class);
  private final Pointer message = new Memory(CAPACITY);
  private final Size capacity = new Size(CAPACITY);

  /** A size_t. */
  public static final class Size extends IntegerType {
    private static final long serialVersionUID = 1;

    /** Creates a zero. */
    public Size() {
      this(0);
    }

    Size(long value) {
      super(Native.SIZE_T_SIZE, value, true);
    }
  }

  // These are C names, which JNA looks up.
  interface Functions extends Library {
    int FletchingOracleStructCount();

    String FletchingOracleStructName(int index);

    long FletchingOracleSize(String struct);

    int FletchingOracleCheckStruct(String struct, long size, long align, Pointer m, Size c);

    int FletchingOracleCheckFieldNames(String struct, String names, Pointer m, Size c);

    int FletchingOracleCheckField(
        String struct, String path, long offset, long size, Pointer m, Size c);

    int FletchingOracleCheckConstant(String name, long value, Pointer m, Size c);

    int FletchingOracleCheckConstantNames(String names, Pointer m, Size c);

    int FletchingOracleCheckEnumerators(String owner, String values, Pointer m, Size c);

    long FletchingOracleCanary(String struct, String path, int element);

    int FletchingOracleFill(String struct, Pointer object);

    int FletchingOracleCheckRead(
        String struct, String path, int element, long seen, Pointer m, Size c);

    int FletchingOracleCheckWritten(String struct, Pointer object, Pointer m, Size c);

    int FletchingOracleVariantCount();

    int FletchingOracleCheckCallbackNames(String struct, String names, Pointer m, Size c);

    int FletchingOracleCheckSignature(
        String struct, String callback, String signature, Pointer m, Size c);

    int FletchingOracleCall(
        String struct, String callback, int variant, Pointer object, Pointer m, Size c);

    void FletchingOracleSawArgument(String struct, String callback, int index, long seen);

    long FletchingOracleExpectedResult();

    int FletchingOracleInstall(String struct, Pointer object);

    void FletchingOracleBeginCall(String struct, String callback, int variant, Pointer object);

    long FletchingOracleArgument(int index);

    int FletchingOracleEndCall(long result, Pointer m, Size c);
  }

  private String line(int code) {
    return code == 0 ? null : message.getString(0, "UTF-8");
  }

  String[] structNames() {
    String[] names = new String[functions.FletchingOracleStructCount()];
    for (int i = 0; i < names.length; i++) {
      names[i] = functions.FletchingOracleStructName(i);
    }
    return names;
  }

  /** Returns -1 if upstream does not have the struct. */
  long size(String struct) {
    return functions.FletchingOracleSize(struct);
  }

  String checkStruct(String struct, long size, long align) {
    return line(functions.FletchingOracleCheckStruct(struct, size, align, message, capacity));
  }

  String checkFieldNames(String struct, String names) {
    return line(functions.FletchingOracleCheckFieldNames(struct, names, message, capacity));
  }

  String checkField(String struct, String path, long offset, long size) {
    return line(functions.FletchingOracleCheckField(struct, path, offset, size, message, capacity));
  }

  String checkConstant(String name, long value) {
    return line(functions.FletchingOracleCheckConstant(name, value, message, capacity));
  }

  String checkConstantNames(String names) {
    return line(functions.FletchingOracleCheckConstantNames(names, message, capacity));
  }

  String checkEnumerators(String owner, String values) {
    return line(functions.FletchingOracleCheckEnumerators(owner, values, message, capacity));
  }

  long canary(String struct, String path, int element) {
    return functions.FletchingOracleCanary(struct, path, element);
  }

  String fill(String struct, Pointer object) {
    int code = functions.FletchingOracleFill(struct, object);
    return code == 0 ? null : struct + ": upstream has no such struct";
  }

  String checkRead(String struct, String path, int element, long seen) {
    return line(functions.FletchingOracleCheckRead(struct, path, element, seen, message, capacity));
  }

  String checkWritten(String struct, Pointer object) {
    return line(functions.FletchingOracleCheckWritten(struct, object, message, capacity));
  }

  int variantCount() {
    return functions.FletchingOracleVariantCount();
  }

  /** Returns -1 if upstream does not have the struct. */
  String checkCallbackNames(String struct, String names) {
    return line(functions.FletchingOracleCheckCallbackNames(struct, names, message, capacity));
  }

  String checkSignature(String struct, String callback, String signature) {
    return line(
        functions.FletchingOracleCheckSignature(struct, callback, signature, message, capacity));
  }

  String call(String struct, String callback, int variant, Pointer object) {
    return line(
        functions.FletchingOracleCall(struct, callback, variant, object, message, capacity));
  }

  void sawArgument(String struct, String callback, int index, long seen) {
    functions.FletchingOracleSawArgument(struct, callback, index, seen);
  }

  long expectedResult() {
    return functions.FletchingOracleExpectedResult();
  }

  String install(String struct, Pointer object) {
    int code = functions.FletchingOracleInstall(struct, object);
    return code == 0 ? null : struct + ": upstream has no such struct";
  }

  void beginCall(String struct, String callback, int variant, Pointer object) {
    functions.FletchingOracleBeginCall(struct, callback, variant, object);
  }

  long argument(int index) {
    return functions.FletchingOracleArgument(index);
  }

  String endCall(long result) {
    return line(functions.FletchingOracleEndCall(result, message, capacity));
  }
}
