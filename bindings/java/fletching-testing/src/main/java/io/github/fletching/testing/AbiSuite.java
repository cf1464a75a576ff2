// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing;

import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import io.github.fletching.abi.ArrowConstants;
import io.github.fletching.abi.DataTypeCode;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.DlpackConstants;
import io.github.fletching.testing.AbiStruct.CallbackField;
import io.github.fletching.testing.AbiStruct.Leaf;
import io.github.fletching.testing.AbiStruct.Place;
import io.github.fletching.testing.AbiStruct.Recorder;
import java.lang.invoke.MethodType;
import java.lang.ref.Reference;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/** Compares the structs of one flavor with the oracle. */
public final class AbiSuite {
  // More arguments than any upstream callback has, in case a flavor declares too many.
  private static final int MAX_ARGUMENTS = 16;
  // Slack for writes past the end of the other side's struct.
  private static final int SLACK = 256;

  private final Oracle oracle = new Oracle();
  private final String language;
  private final List<AbiStruct> structs;
  // A flavor may refer to an object by its address only.
  private final List<Pointer> kept = new ArrayList<>();

  /** Creates the suite; {@code language} names the language in the cells. */
  public AbiSuite(String language, List<AbiStruct> structs) {
    this.language = language;
    this.structs = structs;
  }

  /** Returns all tests, in the order in which to run them. */
  public List<Check> checks() {
    List<Check> checks = new ArrayList<>();
    checks.add(check("constants", "layout", this::constants));
    Map<String, BiConsumer<Check, AbiStruct>> directions = new LinkedHashMap<>();
    directions.put("layout", this::layout);
    directions.put("c_writes", this::cWrites);
    directions.put("c_verifies", this::cVerifies);
    directions.put("c_calls", this::cCalls);
    directions.put("c_is_called", this::cIsCalled);
    for (AbiStruct struct : structs) {
      directions.forEach(
          (direction, body) ->
              checks.add(check(struct.name, direction, check -> body.accept(check, struct))));
    }
    return checks;
  }

  /** Runs all tests without a test framework, prints the failures, and exits with 0 or 1. */
  public void main() {
    boolean passed = true;
    for (Check check : checks()) {
      try {
        check.run();
      } catch (AssertionError e) {
        System.out.println(e.getMessage());
        passed = false;
      }
    }
    System.exit(passed ? 0 : 1);
  }

  private Check check(String struct, String direction, Consumer<Check> body) {
    Cell cell = new Cell(language, struct, direction);
    return new Check(struct + " " + direction, cell, body);
  }

  private void constants(Check check) {
    List<String> names = new ArrayList<>();
    for (Class<?> constants : List.of(ArrowConstants.class, DlpackConstants.class)) {
      for (Field field : constants.getFields()) {
        if (field.getType() != String.class) {
          names.add(field.getName());
          check.expect(oracle.checkConstant(field.getName(), valueOf(field)));
        }
      }
    }
    check.expect(oracle.checkConstantNames(String.join(",", names)));
    for (DeviceType type : DeviceType.known()) {
      type.arrowMacro().ifPresent(macro -> check.expect(oracle.checkConstant(macro, type.value())));
    }
    ruleDeviceTypeValuesOfDlpack(check);
    ruleDeviceTypeDlpackFirst(check);
    List<String> codes = new ArrayList<>();
    DataTypeCode.known().forEach(c -> codes.add(c.dlpackName().orElse("") + "=" + c.value()));
    check.expect(oracle.checkEnumerators("DLDataTypeCode", String.join(",", codes)));
    List<String> own = structs.stream().map(s -> s.name).collect(Collectors.toList());
    for (String name : oracle.structNames()) {
      check.expect(own.contains(name) ? null : name + ": the binding does not declare it");
    }
  }

  void ruleDeviceTypeValuesOfDlpack(Check check) {
    List<String> devices = new ArrayList<>();
    DeviceType.known().forEach(d -> devices.add(d.dlpackName().orElse("") + "=" + d.value()));
    check.expect(oracle.checkEnumerators("DLDeviceType", String.join(",", devices)));
  }

  /** DLPack defines the number first: the check above finds the name there. */
  void ruleDeviceTypeDlpackFirst(Check check) {
    for (DeviceType type : DeviceType.known()) {
      check.expect(type.dlpackName().isPresent() ? null : type + ": DLPack has no such device");
    }
  }

  private static long valueOf(Field constant) {
    try {
      return ((Number) constant.get(null)).longValue();
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }

  private void layout(Check check, AbiStruct struct) {
    check.expect(oracle.checkStruct(struct.name, struct.size, struct.align));
    check.expect(oracle.checkFieldNames(struct.name, String.join(",", struct.fields)));
    for (Map.Entry<String, Place> entry : struct.places.entrySet()) {
      Place place = entry.getValue();
      check.expect(oracle.checkField(struct.name, entry.getKey(), place.offset, place.size));
    }
    List<String> callbacks = new ArrayList<>();
    for (CallbackField callback : struct.callbacks) {
      callbacks.add(callback.name);
      check.expect(oracle.checkSignature(struct.name, callback.name, signature(callback.type())));
    }
    check.expect(oracle.checkCallbackNames(struct.name, String.join(",", callbacks)));
  }

  /** Returns the widths of the arguments and the result in the oracle's notation. */
  private static String signature(MethodType type) {
    String arguments =
        type.parameterList().stream().map(AbiSuite::width).collect(Collectors.joining(","));
    return arguments + "->" + width(type.returnType());
  }

  private static String width(Class<?> type) {
    if (type == void.class) {
      return "v";
    }
    return type.isPrimitive() ? String.valueOf(Native.getNativeSize(type)) : "p";
  }

  private void cWrites(Check check, AbiStruct struct) {
    Pointer object = allocate(struct);
    check.expect(oracle.fill(struct.name, object));
    for (Leaf leaf : struct.leaves) {
      long seen = leaf.way.read(object);
      check.expect(oracle.checkRead(struct.name, leaf.path, leaf.element, seen));
    }
  }

  private void cVerifies(Check check, AbiStruct struct) {
    Pointer object = allocate(struct);
    for (Leaf leaf : struct.leaves) {
      leaf.way.write(object, oracle.canary(struct.name, leaf.path, leaf.element));
    }
    check.expect(oracle.checkWritten(struct.name, object));
  }

  private void cCalls(Check check, AbiStruct struct) {
    if (mayCall(check, struct)) {
      for (CallbackField callback : struct.callbacks) {
        for (int variant = 0; variant < oracle.variantCount(); variant++) {
          Pointer object = allocate(struct);
          Recorder call = new Recorder(oracle, struct.name, callback.name);
          Object installed = callback.install(object, call);
          String problem = oracle.call(struct.name, callback.name, variant, object);
          check.expect(call.problem() == null ? problem : call.problem());
          Reference.reachabilityFence(installed);
        }
      }
    }
  }

  private void cIsCalled(Check check, AbiStruct struct) {
    if (mayCall(check, struct)) {
      Pointer object = allocate(struct);
      check.expect(oracle.install(struct.name, object));
      for (CallbackField callback : struct.callbacks) {
        for (int variant = 0; variant < oracle.variantCount(); variant++) {
          oracle.beginCall(struct.name, callback.name, variant, object);
          long[] arguments = new long[MAX_ARGUMENTS];
          Arrays.setAll(arguments, oracle::argument);
          check.expect(oracle.endCall(callback.invoke(object, arguments)));
        }
      }
    }
  }

  /** Returns false if the struct's layout differs: the call would be undefined behavior. */
  private boolean mayCall(Check check, AbiStruct struct) {
    Check layout = check(struct.name, "layout", c -> {});
    layout(layout, struct);
    String problem = layout.firstProblem();
    check.expect(problem == null ? null : problem + " (so nothing is called)");
    return problem == null;
  }

  /** Allocates zeroed memory that is large enough for both sides. */
  private Pointer allocate(AbiStruct struct) {
    Memory memory = new Memory(Math.max(struct.size, oracle.size(struct.name)) + SLACK);
    memory.clear();
    kept.add(memory);
    return memory;
  }
}
