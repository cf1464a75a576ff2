// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import io.github.fletching.DeviceArray;
import io.github.fletching.FletchingException;
import io.github.fletching.Schema;
import io.github.fletching.Tensor;
import io.github.fletching.testing.NativeLibraries;

/**
 * The tensor conversions of libfletching (cpp/include/fletching/tensor.h), the reference for Java.
 */
final class CoreTensors {
  static final int AS_STORAGE = 1;
  static final int WRITABLE = 2;
  static final int IGNORE_NULLS = 8;
  static final int ALIGNED = 32;
  static final int LISTS = 64;
  static final int COPY = 128;
  private static final int MESSAGE = 1024;

  private static final Functions C =
      com.sun.jna.Native.load(
          NativeLibraries.folder().resolve("libfletching.so.0.1").toString(), Functions.class);

  private CoreTensors() {}

  // These are C names, which JNA looks up.
  interface Functions extends Library {
    int FletchingTensorExport(
        long schema, long array, Pointer stream, int options, PointerByReference out, Pointer text);

    int FletchingTensorImport(
        long tensor,
        Pointer stream,
        int options,
        Pointer schema,
        Pointer array,
        LongByReference flags,
        Pointer text);
  }

  private interface Call {
    int run(Pointer text);
  }

  private static void check(Call call) {
    try (Memory text = new Memory(MESSAGE)) {
      text.clear();
      int code = call.run(text);
      if (code != 0) {
        throw new FletchingException(code, text.getString(0).replace("as_storage", "asStorage()"));
      }
    }
  }

  /** Converts the array to a tensor and closes it. */
  static Tensor export(Schema schema, DeviceArray array, int options) {
    PointerByReference out = new PointerByReference();
    check(
        text ->
            C.FletchingTensorExport(schema.address(), array.address(), null, options, out, text));
    array.close();
    return Tensor.wrap(Pointer.nativeValue(out.getValue()));
  }

  /** The result of an import. */
  static final class Imported implements AutoCloseable {
    final Schema schema;
    final DeviceArray array;
    final long flags;

    Imported(Schema schema, DeviceArray array, long flags) {
      this.schema = schema;
      this.array = array;
      this.flags = flags;
    }

    @Override
    public void close() {
      schema.close();
      array.close();
    }
  }

  /** Imports the tensor, which is consumed. */
  static Imported importTensor(ForeignTensor tensor, int options) {
    Raw schema = Raw.schema();
    Raw array = Raw.deviceArray();
    LongByReference flags = new LongByReference();
    check(
        text ->
            C.FletchingTensorImport(
                tensor.address(), null, options, schema.memory, array.memory, flags, text));
    return new Imported(schema.give(Schema::wrap), array.give(DeviceArray::wrap), flags.getValue());
  }
}
