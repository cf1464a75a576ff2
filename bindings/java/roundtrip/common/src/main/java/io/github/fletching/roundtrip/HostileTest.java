// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.CallbackReference;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.Structure;
import io.github.fletching.jna.abi.ArrowArray;
import io.github.fletching.jna.abi.ArrowDeviceArray;
import io.github.fletching.jna.abi.ArrowDeviceArrayStream;
import io.github.fletching.jna.abi.ArrowSchema;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Foreign code that does what it must not do, or may do but seldom does: a flavor answers with an
 * error that names it, and leaves alone what it did not take. The foreign side is JNA's in either
 * flavor.
 */
public abstract class HostileTest {
  private static final byte[] NOT_UTF8 = {'b', 'a', 'd', ' ', (byte) 0xff, (byte) 0xc3};

  private final Structs structs;
  private final Transit transit;
  private final long alive; // before the test

  // Memory of which Java has only the address.
  private final List<Pointer> kept = new ArrayList<>();

  // C keeps pointers to the callbacks.
  private int schemaReleases;
  private int arrayReleases;
  private int streamReleases;
  private final ArrowSchema.Release releaseSchema =
      self -> {
        schemaReleases++;
        ArrowSchema.setRelease(self, null);
      };
  private final ArrowArray.Release releaseArray =
      self -> {
        arrayReleases++;
        ArrowArray.setRelease(self, null);
      };
  private final ArrowDeviceArrayStream.Release releaseStream =
      self -> {
        streamReleases++;
        ArrowDeviceArrayStream.setRelease(self, null);
      };
  private Pointer errorText;
  private final ArrowDeviceArrayStream.GetLastError getLastError = self -> errorText;
  private int getSchemaResult;
  private final ArrowDeviceArrayStream.GetSchema getSchema =
      (self, out) -> {
        out.write(
            0, fakeSchema().getPointer().getByteArray(0, ArrowSchema.SIZE), 0, ArrowSchema.SIZE);
        return getSchemaResult;
      };
  private int getNextResult;
  private final ArrowDeviceArrayStream.GetNext getNext =
      (self, out) -> {
        byte[] array = fakeArray().getPointer().getByteArray(0, ArrowDeviceArray.SIZE);
        out.write(0, array, 0, array.length);
        return getNextResult;
      };

  private final Memory format = text("i");
  private final Memory buffers = pointers(null, new Memory(4));
  private final ArrowSchema outSchema = new ArrowSchema();
  private final ArrowDeviceArray outArray = new ArrowDeviceArray();
  private final ArrowDeviceArrayStream outStream = new ArrowDeviceArrayStream();

  /** The flavor under test. */
  protected HostileTest(Structs structs, Transit transit) {
    this.structs = structs;
    this.transit = transit;
    this.alive = transit.exported() - transit.released();
  }

  // --- The foreign side

  private static Memory text(String text) {
    Memory memory = new Memory(text.length() + 1);
    memory.setString(0, text, "UTF-8");
    return memory;
  }

  private Memory pointers(Pointer... values) {
    kept.addAll(Arrays.asList(values));
    Memory memory = new Memory((long) values.length * Native.POINTER_SIZE);
    for (int i = 0; i < values.length; i++) {
      memory.setPointer((long) i * Native.POINTER_SIZE, values[i]);
    }
    return memory;
  }

  private ArrowSchema fakeSchema() {
    ArrowSchema schema = new ArrowSchema();
    schema.format = format;
    schema.flags = 2;
    schema.release = CallbackReference.getFunctionPointer(releaseSchema);
    schema.write();
    kept.add(schema.getPointer());
    return schema;
  }

  private ArrowDeviceArray fakeArray() {
    ArrowDeviceArray array = new ArrowDeviceArray();
    array.array.length = 1;
    array.array.nBuffers = 2;
    array.array.buffers = buffers;
    array.array.release = CallbackReference.getFunctionPointer(releaseArray);
    array.deviceType = 1;
    array.deviceId = -1;
    array.reserved[1] = 7; // what a careless producer leaves there
    array.write();
    kept.add(array.getPointer());
    return array;
  }

  private ArrowDeviceArrayStream fakeStream() {
    ArrowDeviceArrayStream stream = new ArrowDeviceArrayStream();
    stream.deviceType = 1;
    stream.getSchema = CallbackReference.getFunctionPointer(getSchema);
    stream.getNext = CallbackReference.getFunctionPointer(getNext);
    stream.getLastError = CallbackReference.getFunctionPointer(getLastError);
    stream.release = CallbackReference.getFunctionPointer(releaseStream);
    stream.write();
    kept.add(stream.getPointer());
    return stream;
  }

  private static long address(Structure struct) {
    return Pointer.nativeValue(struct.getPointer());
  }

  // --- Arrays

  private String send(ArrowSchema schema, ArrowDeviceArray array) {
    return transit.transit(address(schema), address(array), address(outSchema), address(outArray));
  }

  private void assertRefused(ArrowSchema schema, ArrowDeviceArray array, String... words) {
    byte[] schemaBefore = schema.getPointer().getByteArray(0, ArrowSchema.SIZE);
    byte[] arrayBefore = array.getPointer().getByteArray(0, ArrowDeviceArray.SIZE);
    long exported = transit.exported();
    String problem = send(schema, array);
    assertNotEquals(null, problem, "it was accepted");
    for (String word : words) {
      assertTrue(problem.contains(word), problem + " does not say '" + word + "'");
    }
    assertArrayEquals(schemaBefore, schema.getPointer().getByteArray(0, ArrowSchema.SIZE));
    assertArrayEquals(arrayBefore, array.getPointer().getByteArray(0, ArrowDeviceArray.SIZE));
    assertNull(ArrowSchema.getRelease(outSchema.getPointer()));
    assertEquals(exported, transit.exported());
    assertEquals(0, schemaReleases + arrayReleases);
  }

  @Test
  void goodOnesPassAndAreReleasedOnce() {
    long released = transit.released();
    ArrowSchema schema = fakeSchema();
    ArrowDeviceArray array = fakeArray();
    assertNull(send(schema, array));
    schema.read();
    array.read();
    outArray.read();
    assertNull(schema.release);
    assertNull(array.array.release);
    assertArrayEquals(new long[3], outArray.reserved);
    assertEquals(-1, outArray.deviceId);
    structs.schema.callRelease.accept(address(outSchema));
    structs.array.callRelease.accept(address(outArray));
    assertEquals(1, schemaReleases);
    assertEquals(1, arrayReleases);
    assertEquals(released + 2, transit.released());
  }

  @Test
  void aSecondReleaseIsSeenAndNotFollowed() {
    assertNull(send(fakeSchema(), fakeArray()));
    ArrowSchema copy = new ArrowSchema();
    copy.getPointer()
        .write(0, outSchema.getPointer().getByteArray(0, ArrowSchema.SIZE), 0, ArrowSchema.SIZE);
    structs.schema.callRelease.accept(address(outSchema));
    long released = transit.released();
    structs.schema.callRelease.accept(address(copy));
    assertEquals(released, transit.released());
    assertEquals(1, schemaReleases);
    structs.array.callRelease.accept(address(outArray));
  }

  @Test
  void aChildThatIsMovedOutOutlivesItsParent() {
    ArrowSchema child = fakeSchema();
    ArrowSchema parent = fakeSchema();
    parent.format = text("+s");
    parent.nChildren = 1;
    parent.children = pointers(child.getPointer());
    parent.write();
    ArrowDeviceArray childArray = fakeArray();
    ArrowDeviceArray array = fakeArray();
    array.array.nChildren = 1;
    array.array.children = pointers(childArray.getPointer());
    array.write();
    assertNull(send(parent, array));

    ArrowSchema moved = new ArrowSchema();
    Pointer source = ArrowSchema.getChildren(outSchema.getPointer()).getPointer(0);
    moved.getPointer().write(0, source.getByteArray(0, ArrowSchema.SIZE), 0, ArrowSchema.SIZE);
    ArrowSchema.setRelease(source, null);
    structs.schema.callRelease.accept(address(outSchema));
    assertEquals(1, schemaReleases);
    moved.read();
    assertEquals("i", moved.format.getString(0));
    structs.schema.callRelease.accept(address(moved));
    assertEquals(2, schemaReleases);
    structs.array.callRelease.accept(address(outArray));
    assertEquals(2, arrayReleases);
  }

  @Test
  void releasedStructsAreRefused() {
    ArrowSchema schema = fakeSchema();
    ArrowDeviceArray array = fakeArray();
    assertRefused(new ArrowSchema(), array, "ArrowSchema", "released");
    assertRefused(schema, new ArrowDeviceArray(), "ArrowArray", "released");
  }

  @Test
  void nullAddressesAreRefused() {
    assertTrue(transit.transit(0, 0, 0, 0).contains("NULL"));
    assertTrue(transit.transitStream(0, 0, (schema, array) -> {}).contains("NULL"));
  }

  @Test
  void aNullFormatIsRefused() {
    ArrowSchema schema = fakeSchema();
    schema.format = null;
    schema.write();
    assertRefused(schema, fakeArray(), "schema", "format is NULL");
  }

  @Test
  void namesThatAreNotUtf8Pass() {
    ArrowSchema schema = fakeSchema();
    Memory name = new Memory(NOT_UTF8.length + 1L);
    name.clear();
    name.write(0, NOT_UTF8, 0, NOT_UTF8.length);
    schema.name = name;
    schema.write();
    ArrowDeviceArray array = fakeArray();
    String text = Describe.describe(structs, address(schema), address(array));
    assertTrue(text.contains("name=bad \ufffd"), text);
    assertNull(send(schema, array));
    structs.schema.callRelease.accept(address(outSchema));
    structs.array.callRelease.accept(address(outArray));
  }

  private void assertNotDescribed(String format, ArrowDeviceArray array, String problem) {
    ArrowSchema schema = fakeSchema();
    schema.format = text(format);
    schema.write();
    TransitException refused =
        assertThrows(
            TransitException.class,
            () -> Describe.describe(structs, address(schema), address(array)));
    assertEquals("format '" + format + "': " + problem, refused.getMessage());
  }

  @Test
  void formatsThatDoNotExistAreNotDescribed() {
    for (String format :
        new String[] {"", "vx", "i ", "b:", "tsx:", "tss", "w:", "w:-1", "w:9999999999", "d:1"}) {
      assertNotDescribed(format, fakeArray(), "it is not known here");
    }
  }

  @Test
  void buffersThatCannotBeAreNotDescribed() {
    assertNotDescribed("g", viewArray(null), "n_buffers is 4, expected 2");
    assertNotDescribed("vu", fakeArray(), "n_buffers is 2, expected 3 or more");
    assertNotDescribed("vu", viewArray(null), "the sizes of the data buffers are NULL");
    Memory sizes = new Memory(Long.BYTES);
    sizes.setLong(0, -8);
    assertNotDescribed("vz", viewArray(sizes), "the size of data buffer 0 is -8");
    ArrowDeviceArray array = fakeArray();
    array.array.length = 1L << 60;
    array.write();
    assertNotDescribed("w:999999999", array, "length is " + (1L << 60));
  }

  /** With one data buffer. */
  private ArrowDeviceArray viewArray(Pointer sizes) {
    ArrowDeviceArray array = fakeArray();
    array.array.nBuffers = 4;
    array.array.buffers = pointers(null, null, null, sizes);
    array.write();
    return array;
  }

  @Test
  void childrenThatAreNotThereAreRefused() {
    ArrowSchema schema = fakeSchema();
    schema.nChildren = -1;
    schema.write();
    assertRefused(schema, fakeArray(), "n_children is -1");
    schema.nChildren = 1;
    schema.write();
    assertRefused(schema, fakeArray(), "children is NULL");
    schema.children = pointers((Pointer) null);
    schema.write();
    assertRefused(schema, fakeArray(), "children[0] is NULL");
    schema.children = pointers(new ArrowSchema().getPointer());
    schema.write();
    assertRefused(schema, fakeArray(), "ArrowSchema /0", "released");
    schema.children = pointers(fakeSchema().getPointer());
    schema.write();
    assertRefused(schema, fakeArray(), "n_children is 0, in the schema it is 1");
  }

  @Test
  void numbersThatCannotBeAreRefused() {
    ArrowDeviceArray array = fakeArray();
    array.array.length = -1;
    array.write();
    assertRefused(fakeSchema(), array, "length");
    array = fakeArray();
    array.array.nullCount = -2;
    array.write();
    assertRefused(fakeSchema(), array, "null_count");
    array = fakeArray();
    array.array.buffers = null;
    array.write();
    assertRefused(fakeSchema(), array, "buffers is NULL");
    array = fakeArray();
    ArrowDeviceArray dictionary = fakeArray();
    array.array.dictionary = dictionary.array.getPointer();
    array.write();
    assertRefused(fakeSchema(), array, "dictionary");
  }

  // --- Streams

  private String send(ArrowDeviceArrayStream stream, Streams.Observer observer) {
    return transit.transitStream(address(stream), address(outStream), observer);
  }

  private void assertRefused(ArrowDeviceArrayStream stream, String word) {
    stream.write();
    String problem = send(stream, (schema, array) -> {});
    assertNotEquals(null, problem, "it was accepted");
    assertTrue(problem.contains(word), problem + " does not say '" + word + "'");
    assertNull(ArrowDeviceArrayStream.getRelease(outStream.getPointer()));
    assertEquals(0, streamReleases);
  }

  private int next(long out) {
    return structs.stream.callGetNext.fill(address(outStream), out);
  }

  private byte[] lastError() {
    long text = structs.stream.callGetLastError.of(address(outStream));
    return text == 0 ? null : Foreign.textBytes(text);
  }

  private void releaseStreamOnce() {
    structs.stream.callRelease.accept(address(outStream));
    assertEquals(1, streamReleases);
    assertEquals(alive, transit.exported() - transit.released());
  }

  @Test
  void streamsWithoutCallbacksAreRefused() {
    ArrowDeviceArrayStream stream = fakeStream();
    stream.release = null;
    assertRefused(stream, "released");
    stream = fakeStream();
    stream.getSchema = null;
    assertRefused(stream, "get_schema is NULL");
    stream = fakeStream();
    stream.getNext = null;
    assertRefused(stream, "get_next is NULL");
    stream = fakeStream();
    stream.getLastError = null;
    assertRefused(stream, "get_last_error is NULL");
  }

  @Test
  void aStreamWithoutASchemaIsRefusedWithItsText() {
    getSchemaResult = 95;
    errorText = text("no schema today");
    assertRefused(fakeStream(), "no schema today");
    errorText = null;
    assertRefused(fakeStream(), "get_schema failed with errno 95 and no text");
    assertEquals(0, schemaReleases); // what a failed call left there is nobody's
  }

  @Test
  void errnoAndTextAreHandedOn() {
    assertNull(send(fakeStream(), (schema, array) -> {}));
    getNextResult = 95;
    Memory text = new Memory(NOT_UTF8.length + 1L);
    text.clear();
    text.write(0, NOT_UTF8, 0, NOT_UTF8.length);
    errorText = text;
    assertEquals(95, next(address(outArray)));
    assertArrayEquals(NOT_UTF8, lastError());
    errorText = null;
    assertEquals(95, next(address(outArray)));
    String own = new String(lastError(), StandardCharsets.UTF_8);
    assertEquals("get_next failed with errno 95 and no text", own);
    assertEquals(0, arrayReleases); // what a failed call left there is nobody's
    releaseStreamOnce();
  }

  @Test
  void whatIsThrownBecomesAnErrnoAndReleasesTheBatch() {
    Streams.Observer observer =
        (schema, array) -> {
          throw new StackOverflowError("on purpose");
        };
    assertNull(send(fakeStream(), observer));
    assertEquals(TransitException.EIO, next(address(outArray)));
    assertTrue(new String(lastError(), StandardCharsets.UTF_8).contains("on purpose"));
    assertEquals(1, arrayReleases);
    assertNull(ArrowArray.getRelease(ArrowDeviceArray.getArray(outArray.getPointer())));
    releaseStreamOnce();
  }

  @Test
  void aNullOutIsRefused() {
    assertNull(send(fakeStream(), (schema, array) -> {}));
    assertEquals(TransitException.EINVAL, next(0));
    assertEquals("out is NULL", new String(lastError(), StandardCharsets.UTF_8));
    assertEquals(TransitException.EINVAL, structs.stream.callGetSchema.fill(address(outStream), 0));
    releaseStreamOnce();
  }

  @Test
  void aReleasedStreamAnswersWithAnErrno() {
    assertNull(send(fakeStream(), (schema, array) -> {}));
    releaseStreamOnce();
    assertEquals(TransitException.EINVAL, next(address(outArray)));
    assertNull(lastError());
  }
}
