// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.jna.abi.ArrowArray;
import io.github.fletching.jna.abi.ArrowDeviceArray;
import io.github.fletching.jna.abi.ArrowDeviceArrayStream;
import io.github.fletching.jna.abi.ArrowSchema;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

/**
 * Foreign code that does what it must not do, or may do but seldom does: a flavor answers with an
 * error that names it, and leaves alone what it did not take.
 */
public abstract class HostileTest extends ForeignSide {
  private static final byte[] NOT_UTF8 = {'b', 'a', 'd', ' ', (byte) 0xff, (byte) 0xc3};

  private final Structs structs;
  private final Transit transit;
  private final long alive; // before the test

  private final Memory outSchema = ArrowSchema.allocate();
  private final Memory outArray = ArrowDeviceArray.allocate();
  private final Memory outStream = ArrowDeviceArrayStream.allocate();

  /** The flavor under test. */
  protected HostileTest(Structs structs, Transit transit) {
    this.structs = structs;
    this.transit = transit;
    this.alive = transit.exported() - transit.released();
  }

  // --- Arrays

  private String send(Memory schema, Memory array) {
    return transit.transit(address(schema), address(array), address(outSchema), address(outArray));
  }

  private void assertRefused(Memory schema, Memory array, String... words) {
    byte[] schemaBefore = schema.getByteArray(0, ArrowSchema.SIZE);
    byte[] arrayBefore = array.getByteArray(0, ArrowDeviceArray.SIZE);
    long exported = transit.exported();
    String problem = send(schema, array);
    assertNotEquals(null, problem, "it was accepted");
    for (String word : words) {
      assertTrue(problem.contains(word), problem + " does not say '" + word + "'");
    }
    assertArrayEquals(schemaBefore, schema.getByteArray(0, ArrowSchema.SIZE));
    assertArrayEquals(arrayBefore, array.getByteArray(0, ArrowDeviceArray.SIZE));
    assertNull(ArrowSchema.getRelease(outSchema));
    assertEquals(exported, transit.exported());
    assertEquals(0, schemaReleases + arrayReleases);
  }

  @Test
  void goodOnesPassAndAreReleasedOnce() {
    long released = transit.released();
    Memory schema = fakeSchema();
    Memory array = fakeArray();
    assertNull(send(schema, array));
    assertTrue(ArrowSchema.isReleased(schema));
    assertTrue(ArrowDeviceArray.isReleased(array));
    assertEquals(0, ArrowDeviceArray.getReserved(outArray, 1));
    assertEquals(-1, ArrowDeviceArray.getDeviceId(outArray));
    structs.schema.callRelease.accept(address(outSchema));
    structs.array.callRelease.accept(address(outArray));
    assertEquals(1, schemaReleases);
    assertEquals(1, arrayReleases);
    assertEquals(released + 2, transit.released());
  }

  @Test
  void aSecondReleaseIsSeenAndNotFollowed() {
    assertNull(send(fakeSchema(), fakeArray()));
    Memory copy = ArrowSchema.allocate();
    copy.write(0, outSchema.getByteArray(0, ArrowSchema.SIZE), 0, ArrowSchema.SIZE);
    structs.schema.callRelease.accept(address(outSchema));
    long released = transit.released();
    structs.schema.callRelease.accept(address(copy));
    assertEquals(released, transit.released());
    assertEquals(1, schemaReleases);
    structs.array.callRelease.accept(address(outArray));
  }

  @Test
  void aChildThatIsMovedOutOutlivesItsParent() {
    Memory child = fakeSchema();
    Memory parent = fakeSchema();
    ArrowSchema.setFormat(parent, text("+s"));
    ArrowSchema.setNChildren(parent, 1);
    ArrowSchema.setChildren(parent, pointers(child));
    Memory childArray = fakeArray();
    Memory array = fakeArray();
    ArrowArray.setNChildren(inner(array), 1);
    ArrowArray.setChildren(inner(array), pointers(childArray));
    assertNull(send(parent, array));

    Memory moved = ArrowSchema.allocate();
    ArrowSchema.move(ArrowSchema.getChild(outSchema, 0), moved);
    structs.schema.callRelease.accept(address(outSchema));
    assertEquals(1, schemaReleases);
    assertEquals("i", ArrowSchema.getFormatText(moved));
    structs.schema.callRelease.accept(address(moved));
    assertEquals(2, schemaReleases);
    structs.array.callRelease.accept(address(outArray));
    assertEquals(2, arrayReleases);
  }

  @Test
  void releasedStructsAreRefused() {
    Memory schema = fakeSchema();
    Memory array = fakeArray();
    assertRefused(ArrowSchema.allocate(), array, "ArrowSchema", "released");
    assertRefused(schema, ArrowDeviceArray.allocate(), "ArrowArray", "released");
  }

  @Test
  void nullAddressesAreRefused() {
    assertTrue(transit.transit(0, 0, 0, 0).contains("NULL"));
    assertTrue(transit.transitStream(0, 0, (schema, array) -> {}).contains("NULL"));
  }

  @Test
  void aNullFormatIsRefused() {
    Memory schema = fakeSchema();
    ArrowSchema.setFormat(schema, null);
    assertRefused(schema, fakeArray(), "schema", "format is NULL");
  }

  @Test
  void namesThatAreNotUtf8Pass() {
    Memory schema = fakeSchema();
    Memory name = new Memory(NOT_UTF8.length + 1L);
    name.clear();
    name.write(0, NOT_UTF8, 0, NOT_UTF8.length);
    ArrowSchema.setName(schema, name);
    Memory array = fakeArray();
    String text = Describe.describe(structs, address(schema), address(array));
    assertTrue(text.contains("name=bad \ufffd"), text);
    assertNull(send(schema, array));
    structs.schema.callRelease.accept(address(outSchema));
    structs.array.callRelease.accept(address(outArray));
  }

  private void assertNotDescribed(String format, Memory array, String problem) {
    Memory schema = fakeSchema();
    ArrowSchema.setFormat(schema, text(format));
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
    Memory array = fakeArray();
    ArrowArray.setLength(inner(array), 1L << 60);
    assertNotDescribed("w:999999999", array, "length is " + (1L << 60));
  }

  /** With one data buffer. */
  private Memory viewArray(Pointer sizes) {
    Memory array = fakeArray();
    ArrowArray.setNBuffers(inner(array), 4);
    ArrowArray.setBuffers(inner(array), pointers(null, null, null, sizes));
    return array;
  }

  @Test
  void childrenThatAreNotThereAreRefused() {
    Memory schema = fakeSchema();
    ArrowSchema.setNChildren(schema, -1);
    assertRefused(schema, fakeArray(), "n_children is -1");
    ArrowSchema.setNChildren(schema, 1);
    assertRefused(schema, fakeArray(), "children is NULL");
    ArrowSchema.setChildren(schema, pointers((Pointer) null));
    assertRefused(schema, fakeArray(), "children[0] is NULL");
    ArrowSchema.setChildren(schema, pointers(ArrowSchema.allocate()));
    assertRefused(schema, fakeArray(), "ArrowSchema /0", "released");
    ArrowSchema.setChildren(schema, pointers(fakeSchema()));
    assertRefused(schema, fakeArray(), "n_children is 0, in the schema it is 1");
  }

  @Test
  void numbersThatCannotBeAreRefused() {
    Memory array = fakeArray();
    ArrowArray.setLength(inner(array), -1);
    assertRefused(fakeSchema(), array, "length");
    array = fakeArray();
    ArrowArray.setNullCount(inner(array), -2);
    assertRefused(fakeSchema(), array, "null_count");
    array = fakeArray();
    ArrowArray.setBuffers(inner(array), null);
    assertRefused(fakeSchema(), array, "buffers is NULL");
    array = fakeArray();
    Memory dictionary = fakeArray();
    ArrowArray.setDictionary(inner(array), inner(dictionary));
    assertRefused(fakeSchema(), array, "dictionary");
  }

  // --- Streams

  private String send(Memory stream, Streams.Observer observer) {
    return transit.transitStream(address(stream), address(outStream), observer);
  }

  private void assertRefused(Memory stream, String word) {
    String problem = send(stream, (schema, array) -> {});
    assertNotEquals(null, problem, "it was accepted");
    assertTrue(problem.contains(word), problem + " does not say '" + word + "'");
    assertNull(ArrowDeviceArrayStream.getRelease(outStream));
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
    Memory stream = fakeStream();
    ArrowDeviceArrayStream.setRelease(stream, null);
    assertRefused(stream, "released");
    stream = fakeStream();
    ArrowDeviceArrayStream.setGetSchema(stream, null);
    assertRefused(stream, "get_schema is NULL");
    stream = fakeStream();
    ArrowDeviceArrayStream.setGetNext(stream, null);
    assertRefused(stream, "get_next is NULL");
    stream = fakeStream();
    ArrowDeviceArrayStream.setGetLastError(stream, null);
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
    assertNull(ArrowArray.getRelease(inner(outArray)));
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
