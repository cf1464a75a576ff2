// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.Offsets;
import io.github.fletching.abi.StructOffsets;
import java.util.ArrayList;
import java.util.List;

/** A struct in memory of the test's, as C sees it. */
final class Raw {
  private static final LayoutClass TARGET = LayoutClass.of(8, 8);

  final Memory memory;
  private final StructOffsets struct;
  private final long base;

  private Raw(StructOffsets struct, StructOffsets fields) {
    memory = new Memory(struct.size(TARGET));
    memory.clear();
    this.struct = fields;
    base = 0;
  }

  private Raw(Raw other, long address) {
    memory = null;
    struct = other.struct;
    base = address;
  }

  static Raw schema() {
    return new Raw(Offsets.ARROW_SCHEMA, Offsets.ARROW_SCHEMA);
  }

  static Raw array() {
    return new Raw(Offsets.ARROW_ARRAY, Offsets.ARROW_ARRAY);
  }

  /** With the fields of its array, which it begins with. */
  static Raw deviceArray() {
    return new Raw(Offsets.ARROW_DEVICE_ARRAY, Offsets.ARROW_ARRAY);
  }

  static Raw stream() {
    return new Raw(Offsets.ARROW_ARRAY_STREAM, Offsets.ARROW_ARRAY_STREAM);
  }

  static Raw deviceStream() {
    return new Raw(Offsets.ARROW_DEVICE_ARRAY_STREAM, Offsets.ARROW_DEVICE_ARRAY_STREAM);
  }

  /** A struct of the same kind at an address. */
  static Raw at(Raw same, Pointer address) {
    return new Raw(same, Pointer.nativeValue(address));
  }

  /** Fills what a device array has beside its array. */
  void setOnDevice(int type, long id, long event) {
    StructOffsets device = Offsets.ARROW_DEVICE_ARRAY;
    pointer().setInt(device.offset(TARGET, "device_type"), type);
    pointer().setLong(device.offset(TARGET, "device_id"), id);
    pointer().setLong(device.offset(TARGET, "sync_event"), event);
  }

  long address() {
    return memory == null ? base : Pointer.nativeValue(memory);
  }

  private Pointer pointer() {
    return new Pointer(address());
  }

  long get(String field) {
    return pointer().getLong(struct.offset(TARGET, field));
  }

  Raw set(String field, long value) {
    pointer().setLong(struct.offset(TARGET, field), value);
    return this;
  }

  Raw child(int index) {
    return new Raw(this, new Pointer(get("children")).getLong(8L * index));
  }

  /** Moves the struct as a consumer in C does. */
  Raw move(Raw to) {
    to.pointer().write(0, pointer().getByteArray(0, struct.size(TARGET)), 0, struct.size(TARGET));
    return set("release", 0) == null ? null : to;
  }

  /** A copy that a consumer must not make. */
  Raw copy(Raw to) {
    long release = get("release");
    move(to);
    set("release", release);
    return to;
  }

  /** Calls the release callback from C. */
  void release() {
    Function.getFunction(new Pointer(get("release"))).invokeVoid(new Object[] {pointer()});
  }

  int call(String callback, Raw out) {
    Object[] arguments = {pointer(), out.pointer()};
    return Function.getFunction(new Pointer(get(callback))).invokeInt(arguments);
  }

  String lastError() {
    Object[] arguments = {pointer()};
    return Function.getFunction(new Pointer(get("get_last_error"))).invokeString(arguments, false);
  }

  boolean isReleased() {
    return get("release") == 0;
  }

  /** Counts how often it is closed. */
  static final class Counted implements AutoCloseable {
    private final List<String> log;
    private final String name;

    Counted(List<String> log, String name) {
      this.log = log;
      this.name = name;
    }

    @Override
    public void close() {
      log.add(name);
    }
  }

  /** What was closed since the last call. */
  static void assertClosed(List<String> log, String... names) {
    assertEquals(List.of(names), new ArrayList<>(log));
    log.clear();
  }
}
