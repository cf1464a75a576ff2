// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.Offsets;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The rules about the declarations where the pages and headers of the interfaces differ. */
public abstract class DeclarationsSuite {
  private final String structs;
  private final Class<?> pointer;

  /** Creates the suite for the package of an engine's structs and the engine's pointer type. */
  protected DeclarationsSuite(String structs, Class<?> pointer) {
    this.structs = structs;
    this.pointer = pointer;
  }

  private void assertCallback(String name, Class<?> result, Class<?>... arguments)
      throws ClassNotFoundException {
    Method callback =
        Arrays.stream(Class.forName(structs + "." + name).getMethods())
            .filter(method -> Modifier.isAbstract(method.getModifiers()))
            .findFirst()
            .orElseThrow();
    assertEquals(result, callback.getReturnType());
    assertEquals(Arrays.asList(arguments), Arrays.asList(callback.getParameterTypes()));
  }

  /** Five members, without a release callback. */
  @Test
  void ruleAsyncHeaderProducerFields() {
    assertEquals(
        List.of("device_type", "request", "cancel", "additional_metadata", "private_data"),
        Offsets.ARROW_ASYNC_PRODUCER.fields());
    assertEquals(40, Offsets.ARROW_ASYNC_PRODUCER.size(LayoutClass.of(8, 8)));
  }

  @Test
  void ruleAsyncHeaderTaskSelf() throws Exception {
    assertCallback("ArrowAsyncTask$ExtractData", int.class, pointer, pointer);
  }

  @Test
  void ruleAsyncHeaderRequestSigned() throws Exception {
    assertCallback("ArrowAsyncProducer$Request", void.class, pointer, long.class);
  }

  /** The code is an integer; both strings are addresses. */
  @Test
  void ruleAsyncHeaderOnErrorPointer() throws Exception {
    assertCallback(
        "ArrowAsyncDeviceStreamHandler$OnError", void.class, pointer, int.class, pointer, pointer);
  }

  @Test
  void ruleAsyncHeaderProducerPointer() throws Exception {
    Method producer =
        Class.forName(structs + ".ArrowAsyncDeviceStreamHandler").getMethod("getProducer", pointer);
    assertEquals(pointer, producer.getReturnType());
  }

  @Test
  void ruleDeviceHeaderTypeIsInt32() throws Exception {
    Method type = Class.forName(structs + ".ArrowDeviceArray").getMethod("getDeviceType", pointer);
    assertEquals(int.class, type.getReturnType());
    assertEquals(88, Offsets.ARROW_DEVICE_ARRAY.offset(LayoutClass.of(8, 8), "device_type"));
    assertEquals(96, Offsets.ARROW_DEVICE_ARRAY.offset(LayoutClass.of(8, 8), "sync_event"));
  }

  /** Returns the DLDeviceType values of dlpack.h 1.3. */
  private static Map<Integer, String> ofDlpack() {
    Map<Integer, String> names = new HashMap<>();
    String[] first = {"kDLCPU", "kDLCUDA", "kDLCUDAHost", "kDLOpenCL"};
    for (int i = 0; i < first.length; i++) {
      names.put(i + 1, first[i]);
    }
    String[] others = {
      "kDLVulkan",
      "kDLMetal",
      "kDLVPI",
      "kDLROCM",
      "kDLROCMHost",
      "kDLExtDev",
      "kDLCUDAManaged",
      "kDLOneAPI",
      "kDLWebGPU",
      "kDLHexagon",
      "kDLMAIA",
      "kDLTrn"
    };
    for (int i = 0; i < others.length; i++) {
      names.put(i + 7, others[i]);
    }
    return names;
  }

  @Test
  void ruleDeviceTypeValuesOfDlpack() {
    ofDlpack()
        .forEach(
            (value, name) ->
                assertEquals(name, DeviceType.of(value).dlpackName().orElse("unknown")));
  }

  @Test
  void ruleDeviceTypeDlpackFirst() {
    Map<Integer, String> known = new HashMap<>();
    DeviceType.known().forEach(type -> known.put(type.value(), type.dlpackName().orElse("none")));
    assertEquals(ofDlpack(), known);
  }
}
