// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import static io.github.fletching.abi.Errno.EIO;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.Structure;
import io.github.fletching.abi.LayoutClass;
import io.github.fletching.abi.Offsets;
import io.github.fletching.abi.engine.Handles;
import io.github.fletching.testing.AbiStruct;
import io.github.fletching.testing.CapturedLog;
import io.github.fletching.testing.ForeignThread;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Behavior of the declarations beyond reading and writing fields. */
class RawLayerTest {
  private final CapturedLog log = new CapturedLog();

  @AfterEach
  void close() {
    log.close();
  }

  private static <T> T raise() {
    throw new IllegalStateException("on purpose");
  }

  private static void assertMessage(
      Class<? extends Throwable> type, String text, Executable action) {
    assertEquals(text, assertThrows(type, action).getMessage());
  }

  /** JNA writes a Structure back after a call, including a stale release callback. */
  @Test
  void structsDoNotExtendJnaStructure() throws ReflectiveOperationException {
    for (AbiStruct struct : JnaStruct.all()) {
      Class<?> type = Class.forName(getClass().getPackageName() + "." + struct.name());
      assertFalse(Structure.class.isAssignableFrom(type), struct.name());
    }
  }

  /** JNA's own view of the platform. */
  @Structure.FieldOrder({"before", "value"})
  public static final class Probe extends Structure {
    public byte before;
    public long value;
  }

  @Test
  void allocateZeroesReusedMemory() {
    try (Memory used = new Memory(ArrowArray.SIZE)) {
      used.setMemory(0, ArrowArray.SIZE, (byte) -1);
    }
    try (Memory array = ArrowArray.allocate()) { // most allocators return the same block
      assertArrayEquals(new byte[ArrowArray.SIZE], array.getByteArray(0, ArrowArray.SIZE));
    }
  }

  @Test
  void platformMatchesJna() {
    LayoutClass seen = LayoutClass.of(Native.POINTER_SIZE, new Probe().size() - 8);
    assertEquals(seen, Abi.TARGET);
    assertEquals(Offsets.ARROW_ARRAY.size(seen), Abi.sizeOf(Offsets.ARROW_ARRAY));
    int last = Offsets.ARROW_ARRAY.offset(seen, "private_data");
    assertEquals(last, Abi.offsetOf(Offsets.ARROW_ARRAY, "private_data"));
  }

  @Test
  void unsignedFieldsAreWidened() {
    Memory type = DLDataType.allocate();
    DLDataType.setBits(type, 128);
    DLDataType.setLanes(type, 65535);
    DLDataType.setCode(type, 255);
    assertEquals(128, DLDataType.getBits(type));
    assertEquals(65535, DLDataType.getLanes(type));
    assertEquals(255, DLDataType.getCode(type));
    assertMessage(
        IllegalArgumentException.class,
        "DLDataType.bits: value out of range: expected 0 to 255, got 256",
        () -> DLDataType.setBits(type, 256));
    assertMessage(
        IllegalArgumentException.class,
        "DLDataType.lanes: value out of range: expected 0 to 65535, got -1",
        () -> DLDataType.setLanes(type, -1));
    Memory version = DLPackVersion.allocate();
    DLPackVersion.setMajor(version, 0xffffffffL);
    assertEquals(0xffffffffL, DLPackVersion.getMajor(version));
  }

  @Test
  void throwingCallbackReturnsFailureValue() {
    Pointer next = ArrowArrayStream.GetNext.stub((self, out) -> raise());
    assertEquals(EIO, ArrowArrayStream.GetNext.invoke(next, null, null));
    assertEquals(List.of("ArrowArrayStream.get_next: the callback threw: on purpose"), log.take());
    Pointer text = ArrowArrayStream.GetLastError.stub(self -> raise());
    assertNull(ArrowArrayStream.GetLastError.invoke(text, null));
    assertNull(ArrowArrayStream.GetLastError.invokeText(text, null));
    Pointer release = ArrowArray.Release.stub(self -> raise());
    ArrowArray.Release.invoke(release, null);
    Pointer stream = DLPackExchangeAPI.CurrentWorkStream.stub((type, id, out) -> raise());
    assertEquals(-1, DLPackExchangeAPI.CurrentWorkStream.invoke(stream, 1, 0, null));
    assertEquals(4, log.take().size());
  }

  @Test
  void throwingAllocatorCallsSetErrorOnce() {
    List<String> errors = new ArrayList<>();
    Memory context = new Memory(1);
    Pointer report =
        Abi.voidStub(
            "set_error",
            a ->
                errors.add(
                    a[0].equals(new Pointer(Pointer.nativeValue(context)))
                        + Abi.text((Pointer) a[1])
                        + Abi.text((Pointer) a[2])),
            Pointer.class,
            Pointer.class,
            Pointer.class);
    Pointer allocator =
        DLPackExchangeAPI.ManagedTensorAllocator.stub((prototype, out, c, function) -> raise());
    assertEquals(
        -1,
        DLPackExchangeAPI.ManagedTensorAllocator.invoke(allocator, null, null, context, report));
    String expected = "trueRuntimeErrorjava.lang.IllegalStateException: on purpose";
    assertEquals(List.of(expected), errors);
    assertEquals(
        -1, DLPackExchangeAPI.ManagedTensorAllocator.invoke(allocator, null, null, context, null));
    assertEquals(1, errors.size());
  }

  @Test
  void structFindsObjectByPrivateData() {
    int before = Handles.count();
    List<String> released = new ArrayList<>();
    Memory first = ArrowArray.allocate();
    Memory second = ArrowArray.allocate();
    ArrowArray.install(first, self -> released.add("first"));
    ArrowArray.install(second, self -> released.add("second"));
    assertEquals(ArrowArray.getRelease(first), ArrowArray.getRelease(second)); // shared function
    Memory copy = ArrowArray.allocate();
    ArrowArray.move(second, copy);
    assertTrue(ArrowArray.isReleased(second));
    ArrowArray.release(second);
    assertEquals(List.of(), released);
    Memory stale = ArrowArray.allocate();
    Abi.copy(copy, stale, ArrowArray.SIZE);
    ArrowArray.release(copy);
    assertEquals(List.of("second"), released);
    assertTrue(ArrowArray.isReleased(copy));
    assertEquals(List.of(), log.take());
    ArrowArray.release(stale); // detected, not followed
    assertEquals(1, released.size());
    assertTrue(log.take().get(0).contains("invalid handle"));
    ArrowArray.uninstall(first);
    assertEquals(before, Handles.count());
  }

  @Test
  void streamFindsObjectUntilRelease() {
    Memory stream = ArrowDeviceArrayStream.allocate();
    Memory text = new Memory(8);
    text.setString(0, "caf\u00e9", "UTF-8");
    ArrowDeviceArrayStream.install(
        stream,
        new ArrowDeviceArrayStream.Callbacks() {
          @Override
          public int getSchema(Pointer self, Pointer out) {
            return 7;
          }

          @Override
          public int getNext(Pointer self, Pointer out) {
            return raise();
          }

          @Override
          public Pointer getLastError(Pointer self) {
            return text;
          }

          @Override
          public void release(Pointer self) {
            raise();
          }
        });
    Pointer next = ArrowDeviceArrayStream.getGetNext(stream);
    Pointer getText = ArrowDeviceArrayStream.getGetLastError(stream);
    Pointer schema = ArrowDeviceArrayStream.getGetSchema(stream);
    assertEquals(7, ArrowDeviceArrayStream.GetSchema.invoke(schema, stream, null));
    assertEquals(EIO, ArrowDeviceArrayStream.GetNext.invoke(next, stream, null));
    assertEquals("caf\u00e9", ArrowDeviceArrayStream.GetLastError.invokeText(getText, stream));
    ArrowDeviceArrayStream.release(stream);
    assertTrue(ArrowDeviceArrayStream.isReleased(stream));
    assertEquals(EIO, ArrowDeviceArrayStream.GetSchema.invoke(schema, stream, null));
    assertNull(ArrowDeviceArrayStream.GetLastError.invokeText(getText, stream));
  }

  @Test
  void moveDeviceArrayMovesInnerArray() {
    Memory from = ArrowDeviceArray.allocate();
    Memory to = ArrowDeviceArray.allocate();
    List<Pointer> released = new ArrayList<>();
    ArrowArray.install(ArrowDeviceArray.getArray(from), released::add);
    ArrowDeviceArray.setDeviceId(from, 3);
    ArrowDeviceArray.move(from, from);
    assertFalse(ArrowDeviceArray.isReleased(from));
    ArrowDeviceArray.move(from, to);
    assertTrue(ArrowDeviceArray.isReleased(from));
    assertEquals(3, ArrowDeviceArray.getDeviceId(to));
    ArrowDeviceArray.release(to);
    ArrowDeviceArray.release(to);
    assertEquals(1, released.size());
  }

  @Test
  void deleterMayFreeStruct() {
    Memory tensor = DLManagedTensor.allocate();
    List<Pointer> deleted = new ArrayList<>();
    DLManagedTensor.release(tensor); // a no-op without a deleter
    DLManagedTensor.install(tensor, deleted::add);
    DLManagedTensor.release(tensor);
    assertNotNull(DLManagedTensor.getDeleter(tensor)); // not overwritten after the call
    assertEquals(1, deleted.size());
  }

  @Test
  void listsAndStringsAreRead() {
    Memory array = ArrowArray.allocate();
    Memory child = ArrowArray.allocate();
    Memory children = new Memory(2L * Native.POINTER_SIZE);
    children.setPointer(0, child);
    children.setPointer(Native.POINTER_SIZE, null);
    ArrowArray.setChildren(array, children);
    ArrowArray.setNChildren(array, 2);
    assertEquals(Pointer.nativeValue(child), Pointer.nativeValue(ArrowArray.getChild(array, 0)));
    assertMessage(
        IllegalStateException.class,
        "ArrowArray.children[1]: NULL: expected a struct",
        () -> ArrowArray.getChild(array, 1));
    assertMessage(
        IndexOutOfBoundsException.class,
        "ArrowArray.children: index out of range: expected less than 2, got 2",
        () -> ArrowArray.getChild(array, 2));
    assertThrows(IndexOutOfBoundsException.class, () -> ArrowArray.getChild(array, -1));
    ArrowArray.setNBuffers(array, 1);
    assertMessage(
        IllegalStateException.class,
        "ArrowArray.buffers: NULL: expected 1 entries",
        () -> ArrowArray.getBuffer(array, 0));
    ArrowArray.setBuffers(array, children);
    assertNotNull(ArrowArray.getBuffer(array, 0));
    Memory schema = ArrowSchema.allocate();
    assertNull(ArrowSchema.getNameText(schema));
    Memory name = new Memory(3);
    name.write(0, new byte[] {'a', (byte) 0xff, 0}, 0, 3);
    ArrowSchema.setName(schema, name);
    assertEquals("a\ufffd", ArrowSchema.getNameText(schema));
    Memory tensor = DLTensor.allocate();
    Memory shape = new Memory(8);
    shape.setLong(0, 9);
    DLTensor.setNdim(tensor, 1);
    DLTensor.setShape(tensor, shape);
    assertEquals(9, DLTensor.getShape(tensor, 0));
  }

  @Test
  void invokeRejectsNullCallback() {
    assertMessage(
        IllegalStateException.class,
        "ArrowArrayStream.get_next: NULL: expected a function",
        () -> ArrowArrayStream.GetNext.invoke(null, null, null));
  }

  @Test
  void foreignThreadIsDaemonUntilItEnds() {
    List<Thread> threads = new ArrayList<>();
    Pointer function =
        ArrowArrayStream.GetLastError.stub(
            self -> {
              threads.add(Thread.currentThread());
              assertTrue(Thread.currentThread().isDaemon());
              return self;
            });
    ForeignThread.run(Pointer.nativeValue(function));
    assertEquals(List.of(), log.take());
    assertEquals(1, threads.size());
    assertFalse(threads.get(0).isAlive());
  }
}
