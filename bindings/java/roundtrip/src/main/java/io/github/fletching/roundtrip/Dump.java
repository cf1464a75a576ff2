// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import static io.github.fletching.roundtrip.Rooms.C;

import io.github.fletching.ArrayView;
import io.github.fletching.DeviceArray;
import io.github.fletching.FletchingException;
import io.github.fletching.Schema;
import io.github.fletching.SchemaView;
import io.github.fletching.View;
import io.github.fletching.abi.Offsets;
import io.github.fletching.abi.StructOffsets;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;

/**
 * The structs as text, one line for every field: tests/roundtrip/README.md, "The dump". A field is
 * read through its view. What views do not show is read from memory: private_data, which pointers
 * are NULL, and where the structs below are.
 */
final class Dump {
  private static final int EINVAL = 22;
  private static final int EMPTY_METADATA = 4; // bytes: the number of pairs alone

  private final StringBuilder text = new StringBuilder();

  private Dump() {}

  /**
   * The dump of a schema and a device array.
   *
   * @throws FletchingException EINVAL for a format that is NULL, a child that is NULL or released,
   *     a count of children that has no list, and metadata that cannot be read
   */
  static String of(Schema schema, DeviceArray array) {
    return of(schema) + of(array);
  }

  /** The lines of a schema alone. */
  static String of(Schema schema) {
    Dump dump = new Dump();
    dump.schema("schema.", schema.view(), schema.address());
    Reference.reachabilityFence(schema);
    return dump.text.toString();
  }

  /** The lines of a device array alone. */
  static String of(DeviceArray array) {
    Dump dump = new Dump();
    dump.array("array.", array.view(), array.address());
    dump.line("device_id", array.deviceId());
    dump.line("device_type", array.deviceType().value());
    dump.address("sync_event", array.syncEvent());
    long reserved = array.address() + Rooms.offset(Offsets.ARROW_DEVICE_ARRAY, "reserved");
    for (int i = 0; i < 3; i++) {
      dump.line("reserved[" + i + "]", C.getLong(reserved + 8L * i));
    }
    Reference.reachabilityFence(array);
    return dump.text.toString();
  }

  private void schema(String path, SchemaView view, long address) {
    Fields fields = new Fields(Offsets.ARROW_SCHEMA, path, view, address);
    if (fields.pointer("format") == 0) {
      throw malformed(path, "format: NULL: expected a text");
    }
    bytes(path + "format", fields.pointer("format"), utf8(view.format()));
    bytes(path + "name", fields.pointer("name"), utf8(view.name()));
    byte[] metadata = view.metadata().encode();
    bytes(
        path + "metadata",
        fields.pointer("metadata"),
        metadata.length == 0 ? new byte[EMPTY_METADATA] : metadata);
    line(path + "flags", view.flags());
    line(path + "n_children", fields.number("n_children"));
    for (int i = 0; i < fields.childCount(); i++) {
      schema(path + "children[" + i + "].", view.child(i), fields.child(i));
    }
    if (fields.pointer("dictionary") != 0) {
      schema(path + "dictionary.", view.dictionary(), fields.pointer("dictionary"));
    }
    address(path + "private_data", fields.pointer("private_data"));
  }

  private void array(String path, ArrayView view, long address) {
    Fields fields = new Fields(Offsets.ARROW_ARRAY, path, view, address);
    line(path + "length", view.length());
    line(path + "null_count", view.nullCount());
    line(path + "offset", view.offset());
    line(path + "n_buffers", fields.number("n_buffers"));
    line(path + "n_children", fields.number("n_children"));
    long[] buffers = view.buffers();
    for (int i = 0; i < buffers.length; i++) {
      address(path + "buffers[" + i + "]", buffers[i]);
    }
    for (int i = 0; i < fields.childCount(); i++) {
      array(path + "children[" + i + "].", view.child(i), fields.child(i));
    }
    if (fields.pointer("dictionary") != 0) {
      array(path + "dictionary.", view.dictionary(), fields.pointer("dictionary"));
    }
    address(path + "private_data", fields.pointer("private_data"));
  }

  private static FletchingException malformed(String path, String problem) {
    return new FletchingException(EINVAL, path.substring(0, path.length() - 1) + ": " + problem);
  }

  /** The fields of a live struct in memory. */
  private static final class Fields {
    private final StructOffsets struct;
    private final View view;
    private final long base;

    Fields(StructOffsets struct, String path, View view, long base) {
      this.struct = struct;
      this.view = view;
      this.base = base;
      if (view.isReleased()) {
        throw malformed(path, "NULL or released: expected a live struct");
      }
      if (number("n_children") != view.childCount()) {
        throw malformed(path, "n_children: " + number("n_children") + ": expected that many");
      }
    }

    long number(String field) {
      return C.getLong(base + Rooms.offset(struct, field));
    }

    long pointer(String field) {
      return C.getAddress(base + Rooms.offset(struct, field));
    }

    int childCount() {
      return view.childCount();
    }

    long child(int index) {
      return C.getAddress(pointer("children") + (long) index * C.pointerSize());
    }
  }

  // --- Values

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private void line(String path, long value) {
    line(path, Long.toString(value));
  }

  private void address(String path, long value) {
    line(path, "0x" + Long.toHexString(value));
  }

  private void line(String path, String value) {
    text.append(path).append('=').append(value).append('\n');
  }

  private void bytes(String path, long pointer, byte[] content) {
    if (pointer == 0) {
      line(path, "NULL");
      return;
    }
    StringBuilder quoted = new StringBuilder("\"");
    for (byte each : content) {
      boolean plain = each >= 0x20 && each <= 0x7e && each != '"' && each != '%';
      quoted.append(plain ? String.valueOf((char) each) : String.format("%%%02x", each));
    }
    line(path, quoted.append('"').toString());
  }
}
