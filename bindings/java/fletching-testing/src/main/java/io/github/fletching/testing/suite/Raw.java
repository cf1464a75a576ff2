// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.DeviceArray;
import io.github.fletching.FletchingException;
import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.Offsets;
import io.github.fletching.abi.StructOffsets;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongFunction;
import org.junit.jupiter.api.function.Executable;

/** A struct in the test's memory, as C sees it. */
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

  private Raw(StructOffsets fields, long address) {
    memory = null;
    struct = fields;
    base = address;
  }

  static Raw schema() {
    return new Raw(Offsets.ARROW_SCHEMA, Offsets.ARROW_SCHEMA);
  }

  static Raw array() {
    return new Raw(Offsets.ARROW_ARRAY, Offsets.ARROW_ARRAY);
  }

  /** Returns a device array, with the fields of the array at its start. */
  static Raw deviceArray() {
    return new Raw(Offsets.ARROW_DEVICE_ARRAY, Offsets.ARROW_ARRAY);
  }

  static Raw stream() {
    return new Raw(Offsets.ARROW_ARRAY_STREAM, Offsets.ARROW_ARRAY_STREAM);
  }

  static Raw deviceStream() {
    return new Raw(Offsets.ARROW_DEVICE_ARRAY_STREAM, Offsets.ARROW_DEVICE_ARRAY_STREAM);
  }

  /** Returns a schema that is already in native memory. */
  static Raw schemaAt(long address) {
    return new Raw(Offsets.ARROW_SCHEMA, address);
  }

  static Raw arrayAt(long address) {
    return new Raw(Offsets.ARROW_ARRAY, address);
  }

  static Raw streamAt(long address) {
    return new Raw(Offsets.ARROW_ARRAY_STREAM, address);
  }

  static Raw deviceStreamAt(long address) {
    return new Raw(Offsets.ARROW_DEVICE_ARRAY_STREAM, address);
  }

  /** Returns the device fields after the embedded array; keep this object reachable. */
  Raw device() {
    return new Raw(Offsets.ARROW_DEVICE_ARRAY, address());
  }

  /** Calls a function with the address. An address alone does not keep the memory. */
  <T> T give(LongFunction<T> taker) {
    try {
      return taker.apply(address());
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /** Keep this object reachable while the address is used. */
  long address() {
    return memory == null ? base : Pointer.nativeValue(memory);
  }

  long address(String field) {
    return address() + struct.offset(TARGET, field);
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

  int getInt(String field) {
    return pointer().getInt(struct.offset(TARGET, field));
  }

  Raw setInt(String field, int value) {
    pointer().setInt(struct.offset(TARGET, field), value);
    return this;
  }

  long[] reserved() {
    return pointer().getLongArray(Offsets.ARROW_DEVICE_ARRAY.offset(TARGET, "reserved"), 3);
  }

  /** Overwrites the whole struct. */
  Raw fill(int value) {
    pointer().setMemory(0, size(), (byte) value);
    return this;
  }

  private int size() {
    return memory == null ? struct.size(TARGET) : (int) memory.size();
  }

  Raw child(int index) {
    return new Raw(struct, new Pointer(get("children")).getLong(8L * index));
  }

  Raw dictionary() {
    return new Raw(struct, get("dictionary"));
  }

  /** Returns the string that a field points to. */
  String text(String field) {
    return new Pointer(get(field)).getString(0, "UTF-8");
  }

  /** Moves the struct as a C consumer does. */
  Raw move(Raw to) {
    to.pointer().write(0, pointer().getByteArray(0, size()), 0, size());
    set("release", 0);
    return to;
  }

  /** Makes a bitwise copy, which a consumer must not do. */
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
    Object[] arguments = {pointer(), out == null ? Pointer.NULL : out.pointer()};
    return Function.getFunction(new Pointer(get(callback))).invokeInt(arguments);
  }

  String lastError() {
    Object[] arguments = {pointer()};
    return Function.getFunction(new Pointer(get("get_last_error"))).invokeString(arguments, false);
  }

  boolean isReleased() {
    return get("release") == 0;
  }

  boolean isSchema() {
    return struct == Offsets.ARROW_SCHEMA;
  }

  /** Object that logs its name when it is closed. */
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

  /** Expects the names logged since the previous check. */
  static void assertClosed(List<String> log, String... names) {
    assertEquals(List.of(names), new ArrayList<>(log));
    log.clear();
  }

  static void assertError(int errno, String text, Executable action) {
    FletchingException thrown = assertThrows(FletchingException.class, action);
    assertEquals(text, thrown.getMessage());
    assertEquals(errno, thrown.errno());
  }

  static void assertInvalid(String text, Executable action) {
    assertError(22, text, action);
  }

  /** Builds an array with {@code columns} columns; the last one has a dictionary. */
  static ArrayBuilder batch(int columns) {
    ArrayBuilder batch = new ArrayBuilder(3).buffers(0);
    for (int i = 0; i < columns; i++) {
      ArrayBuilder column = new ArrayBuilder(3).buffers(0, 0x1000 + i);
      batch.child(i < columns - 1 ? column : column.dictionary(new ArrayBuilder(2).buffers(0, 0)));
    }
    return batch;
  }

  static Raw exported(Array array) {
    Raw raw = Raw.array();
    array.moveTo(raw.address());
    return raw;
  }

  static Raw exported(DeviceArray array) {
    Raw raw = Raw.deviceArray();
    array.moveTo(raw.address());
    return raw;
  }
}
