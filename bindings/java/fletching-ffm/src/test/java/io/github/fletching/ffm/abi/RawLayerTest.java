// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm.abi;

import static io.github.fletching.abi.Errno.EIO;
import static java.lang.foreign.MemorySegment.NULL;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.abi.engine.Handles;
import io.github.fletching.testing.CapturedLog;
import io.github.fletching.testing.ForeignThread;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Behavior of the declarations beyond reading and writing fields. */
class RawLayerTest {
  private final CapturedLog log = new CapturedLog();
  private final Arena arena = Arena.ofShared();

  @AfterEach
  void close() {
    log.close();
    arena.close();
  }

  private MemorySegment memory(StructLayout layout) {
    return arena.allocate(layout);
  }

  /** Returns the pointer as C passes it: without a size. */
  private static MemorySegment pointer(MemorySegment segment) {
    return MemorySegment.ofAddress(segment.address());
  }

  private static <T> T raise() {
    throw new IllegalStateException("on purpose");
  }

  private static void assertMessage(
      Class<? extends Throwable> type, String text, Executable action) {
    assertEquals(text, assertThrows(type, action).getMessage());
  }

  @Test
  void unsignedFieldsAreWidened() {
    MemorySegment type = memory(DLDataType.LAYOUT);
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
    MemorySegment version = memory(DLPackVersion.LAYOUT);
    DLPackVersion.setMajor(version, 0xffffffffL);
    assertEquals(0xffffffffL, DLPackVersion.getMajor(version));
  }

  @Test
  void throwingCallbackReturnsFailureValue() {
    MemorySegment next = ArrowArrayStream.GetNext.stub((self, out) -> raise());
    assertEquals(EIO, ArrowArrayStream.GetNext.invoke(next, NULL, NULL));
    assertEquals(List.of("ArrowArrayStream.get_next: the callback threw: on purpose"), log.take());
    MemorySegment text = ArrowArrayStream.GetLastError.stub(self -> raise());
    assertEquals(NULL, ArrowArrayStream.GetLastError.invoke(text, NULL));
    assertNull(ArrowArrayStream.GetLastError.invokeText(text, NULL));
    MemorySegment release = ArrowArray.Release.stub(self -> raise());
    ArrowArray.Release.invoke(release, NULL);
    MemorySegment stream = DLPackExchangeAPI.CurrentWorkStream.stub((type, id, out) -> raise());
    assertEquals(-1, DLPackExchangeAPI.CurrentWorkStream.invoke(stream, 1, 0, NULL));
    assertEquals(4, log.take().size());
  }

  /** The signature in C. */
  interface SetError {
    void callback(MemorySegment context, MemorySegment kind, MemorySegment message);
  }

  @Test
  void throwingAllocatorCallsSetErrorOnce() {
    List<String> errors = new ArrayList<>();
    MemorySegment context = arena.allocate(1);
    FunctionDescriptor signature = FunctionDescriptor.ofVoid(ADDRESS, ADDRESS, ADDRESS);
    SetError record =
        (c, kind, message) ->
            errors.add(c.equals(pointer(context)) + Abi.text(kind) + Abi.text(message));
    MemorySegment report = Abi.stub("set_error", null, SetError.class, record, signature);
    MemorySegment allocator =
        DLPackExchangeAPI.ManagedTensorAllocator.stub((prototype, out, c, function) -> raise());
    assertEquals(
        -1,
        DLPackExchangeAPI.ManagedTensorAllocator.invoke(allocator, NULL, NULL, context, report));
    String expected = "trueRuntimeErrorjava.lang.IllegalStateException: on purpose";
    assertEquals(List.of(expected), errors);
    assertEquals(
        -1, DLPackExchangeAPI.ManagedTensorAllocator.invoke(allocator, NULL, NULL, context, NULL));
    assertEquals(1, errors.size());
  }

  @Test
  void structFindsObjectByPrivateData() {
    int before = Handles.count();
    List<String> released = new ArrayList<>();
    MemorySegment first = memory(ArrowArray.LAYOUT);
    MemorySegment second = memory(ArrowArray.LAYOUT);
    ArrowArray.install(first, self -> released.add("first"));
    ArrowArray.install(second, self -> released.add("second"));
    assertEquals(ArrowArray.getRelease(first), ArrowArray.getRelease(second)); // shared function
    MemorySegment copy = memory(ArrowArray.LAYOUT);
    ArrowArray.move(second, copy);
    assertTrue(ArrowArray.isReleased(second));
    ArrowArray.release(second);
    assertEquals(List.of(), released);
    MemorySegment stale = memory(ArrowArray.LAYOUT);
    Abi.copy(copy, stale, ArrowArray.LAYOUT);
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
    MemorySegment stream = memory(ArrowDeviceArrayStream.LAYOUT);
    MemorySegment text = arena.allocateFrom("caf\u00e9");
    ArrowDeviceArrayStream.install(
        stream,
        new ArrowDeviceArrayStream.Callbacks() {
          @Override
          public int getSchema(MemorySegment self, MemorySegment out) {
            return 7;
          }

          @Override
          public int getNext(MemorySegment self, MemorySegment out) {
            return raise();
          }

          @Override
          public MemorySegment getLastError(MemorySegment self) {
            return text;
          }

          @Override
          public void release(MemorySegment self) {
            raise();
          }
        });
    MemorySegment next = ArrowDeviceArrayStream.getGetNext(stream);
    MemorySegment getText = ArrowDeviceArrayStream.getGetLastError(stream);
    MemorySegment schema = ArrowDeviceArrayStream.getGetSchema(stream);
    assertEquals(7, ArrowDeviceArrayStream.GetSchema.invoke(schema, stream, NULL));
    assertEquals(EIO, ArrowDeviceArrayStream.GetNext.invoke(next, stream, NULL));
    assertEquals("caf\u00e9", ArrowDeviceArrayStream.GetLastError.invokeText(getText, stream));
    ArrowDeviceArrayStream.release(stream);
    assertTrue(ArrowDeviceArrayStream.isReleased(stream));
    assertEquals(EIO, ArrowDeviceArrayStream.GetSchema.invoke(schema, stream, NULL));
    assertNull(ArrowDeviceArrayStream.GetLastError.invokeText(getText, stream));
  }

  @Test
  void moveDeviceArrayMovesInnerArray() {
    MemorySegment from = memory(ArrowDeviceArray.LAYOUT);
    MemorySegment to = memory(ArrowDeviceArray.LAYOUT);
    List<MemorySegment> released = new ArrayList<>();
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
    MemorySegment tensor = memory(DLManagedTensor.LAYOUT);
    List<MemorySegment> deleted = new ArrayList<>();
    DLManagedTensor.release(tensor); // a no-op without a deleter
    DLManagedTensor.install(tensor, deleted::add);
    DLManagedTensor.release(tensor);
    assertNotEquals(NULL, DLManagedTensor.getDeleter(tensor)); // not overwritten after the call
    assertEquals(1, deleted.size());
  }

  @Test
  void listsAndStringsAreRead() {
    MemorySegment array = memory(ArrowArray.LAYOUT);
    MemorySegment child = memory(ArrowArray.LAYOUT);
    MemorySegment children = arena.allocate(ADDRESS, 2);
    children.set(ADDRESS, 0, child);
    ArrowArray.setChildren(array, children);
    ArrowArray.setNChildren(array, 2);
    assertEquals(child, ArrowArray.getChild(array, 0)); // has its size
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
    assertEquals(pointer(child), ArrowArray.getBuffer(array, 0));
    assertEquals(16, ArrowArray.getBuffer(array, 0, 16).byteSize());
    children.set(ADDRESS, 0, NULL);
    assertEquals(NULL, ArrowArray.getBuffer(array, 0, 0));
    assertMessage(
        IllegalArgumentException.class,
        "ArrowArray.buffers: NULL: expected 1 bytes",
        () -> ArrowArray.getBuffer(array, 0, 1));
    MemorySegment schema = memory(ArrowSchema.LAYOUT);
    assertNull(ArrowSchema.getNameText(schema));
    ArrowSchema.setName(schema, arena.allocateFrom(JAVA_BYTE, new byte[] {'a', (byte) 0xff, 0}));
    assertEquals("a\ufffd", ArrowSchema.getNameText(schema));
    MemorySegment tensor = memory(DLTensor.LAYOUT);
    DLTensor.setNdim(tensor, 1);
    DLTensor.setShape(tensor, arena.allocateFrom(JAVA_LONG, 9));
    assertEquals(9, DLTensor.getShape(tensor, 0));
  }

  @Test
  void atResizesOnlyCPointers() {
    MemorySegment array = memory(ArrowArray.LAYOUT);
    assertEquals(array, ArrowArray.at(pointer(array)));
    assertEquals(array, ArrowArray.at(array));
    assertMessage(
        IllegalArgumentException.class,
        "ArrowArray: NULL: expected a pointer to a struct",
        () -> ArrowArray.at(NULL));
    assertMessage(
        IllegalArgumentException.class,
        "ArrowDeviceArray: segment too small: expected 128 bytes, got 80",
        () -> ArrowDeviceArray.at(array));
    MemorySegment heap = MemorySegment.ofArray(new long[32]).asSlice(8);
    assertMessage(
        IllegalArgumentException.class,
        "ArrowArray: segment of an array on the heap: expected native memory",
        () -> ArrowArray.at(heap));
    MemorySegment closed;
    try (Arena confined = Arena.ofConfined()) {
      closed = ArrowArray.at(confined.allocate(ArrowArray.LAYOUT));
    }
    assertThrows(IllegalStateException.class, () -> ArrowArray.getLength(closed));
  }

  @Test
  void invokeRejectsNullCallback() {
    assertMessage(
        IllegalStateException.class,
        "ArrowArrayStream.get_next: NULL: expected a function",
        () -> ArrowArrayStream.GetNext.invoke(NULL, NULL, NULL));
  }

  @Test
  void foreignThreadIsDaemonUntilItEnds() {
    List<Thread> threads = new ArrayList<>();
    MemorySegment function =
        ArrowArrayStream.GetLastError.stub(
            self -> {
              threads.add(Thread.currentThread());
              assertTrue(Thread.currentThread().isDaemon());
              return self;
            });
    ForeignThread.run(function.address());
    assertEquals(List.of(), log.take());
    assertEquals(1, threads.size());
    assertFalse(threads.get(0).isAlive());
  }
}
