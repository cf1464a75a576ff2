// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import io.github.fletching.jna.abi.ArrowArray;
import io.github.fletching.jna.abi.ArrowDeviceArray;
import io.github.fletching.jna.abi.ArrowDeviceArrayStream;
import io.github.fletching.jna.abi.ArrowSchema;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Structs of a foreign producer, which counts its releases. It is JNA's in either flavor. */
abstract class ForeignSide {
  // Memory of which Java has only the address.
  private final List<Pointer> kept = new ArrayList<>();
  private final Memory format = text("i");
  private final Memory buffers = pointers(null, new Memory(4));

  int schemaReleases;
  int arrayReleases;
  int streamReleases;
  Pointer errorText;
  int getSchemaResult;
  int getNextResult;

  private final class Stream implements ArrowDeviceArrayStream.Callbacks {
    @Override
    public int getSchema(Pointer self, Pointer out) {
      ArrowSchema.move(fakeSchema(), out);
      return getSchemaResult;
    }

    @Override
    public int getNext(Pointer self, Pointer out) {
      ArrowDeviceArray.move(fakeArray(), out);
      return getNextResult;
    }

    @Override
    public Pointer getLastError(Pointer self) {
      return errorText;
    }

    @Override
    public void release(Pointer self) {
      streamReleases++;
    }
  }

  static Memory text(String text) {
    Memory memory = new Memory(text.length() + 1);
    memory.setString(0, text, "UTF-8");
    return memory;
  }

  Memory pointers(Pointer... values) {
    kept.addAll(Arrays.asList(values));
    Memory memory = new Memory((long) values.length * Native.POINTER_SIZE);
    for (int i = 0; i < values.length; i++) {
      memory.setPointer((long) i * Native.POINTER_SIZE, values[i]);
    }
    return memory;
  }

  Memory fakeSchema() {
    Memory schema = ArrowSchema.allocate();
    ArrowSchema.setFormat(schema, format);
    ArrowSchema.setFlags(schema, 2);
    ArrowSchema.install(schema, self -> schemaReleases++);
    kept.add(schema);
    return schema;
  }

  Memory fakeArray() {
    Memory array = ArrowDeviceArray.allocate();
    ArrowArray.setLength(inner(array), 1);
    ArrowArray.setNBuffers(inner(array), 2);
    ArrowArray.setBuffers(inner(array), buffers);
    ArrowArray.install(inner(array), self -> arrayReleases++);
    ArrowDeviceArray.setDeviceType(array, 1);
    ArrowDeviceArray.setDeviceId(array, -1);
    ArrowDeviceArray.setReserved(array, 1, 7); // what a careless producer leaves there
    kept.add(array);
    return array;
  }

  Memory fakeStream() {
    Memory stream = ArrowDeviceArrayStream.allocate();
    ArrowDeviceArrayStream.setDeviceType(stream, 1);
    ArrowDeviceArrayStream.install(stream, new Stream());
    kept.add(stream);
    return stream;
  }

  static Pointer inner(Pointer deviceArray) {
    return ArrowDeviceArray.getArray(deviceArray);
  }

  static long address(Pointer struct) {
    return Pointer.nativeValue(struct);
  }
}
