// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm.abi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.abi.Offsets;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;

// Names no field or callback of the spec, so that it compiles whatever the spec says.
class AbiClassTest {
  private static String layoutError(MemoryLayout... members) {
    Error error = assertThrows(Error.class, () -> Abi.layout(Offsets.ARROW_ASYNC_TASK, members));
    return error.getMessage();
  }

  @Test
  void aWrongLayoutIsSeen() {
    assertTrue(layoutError(ADDRESS.withName("extract_data")).contains("size is 8 here"));
    MemoryLayout[] swapped = {ADDRESS.withName("private_data"), ADDRESS.withName("extract_data")};
    assertTrue(layoutError(swapped).contains("fields are [private_data, extract_data]"));
    MemoryLayout padding = MemoryLayout.paddingLayout(4);
    MemoryLayout narrow = JAVA_INT.withName("extract_data");
    MemoryLayout shifted = JAVA_INT.withName("private_data");
    String alignment = layoutError(narrow, padding, shifted, padding);
    assertTrue(alignment.contains("alignment is 4 here"), alignment);
  }

  @Test
  void nullSaysWhatItIs() {
    Exception function =
        assertThrows(
            IllegalStateException.class,
            () -> Abi.requireFunction(MemorySegment.NULL, "ArrowArrayStream.get_next"));
    assertEquals("ArrowArrayStream.get_next is NULL", function.getMessage());
    Exception pointer =
        assertThrows(IllegalArgumentException.class, () -> ArrowSchema.at(MemorySegment.NULL));
    assertEquals("a pointer to ArrowSchema is NULL", pointer.getMessage());
  }

  /** As a callback is generated. */
  interface Code {
    int callback();
  }

  /** The same with a pointer. */
  interface Text {
    MemorySegment callback();
  }

  /** The same with nothing. */
  interface Nothing {
    void callback();
  }

  @Test
  void whatACallbackThrowsStaysInJavaAndIsLogged() throws Throwable {
    FunctionDescriptor code = FunctionDescriptor.of(JAVA_INT);
    FunctionDescriptor text = FunctionDescriptor.of(ADDRESS);
    FunctionDescriptor nothing = FunctionDescriptor.ofVoid();
    Error thrown = new StackOverflowError("on purpose");
    Log log = new Log();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment codeStub = Abi.stub(Code.class, () -> raise(thrown, 0), code, arena);
      assertEquals(Abi.EIO, (int) Abi.downcall(code).invokeExact(codeStub));
      MemorySegment textStub = Abi.stub(Text.class, () -> raise(thrown, null), text, arena);
      assertEquals(MemorySegment.NULL, (MemorySegment) Abi.downcall(text).invokeExact(textStub));
      MemorySegment stub = Abi.stub(Nothing.class, () -> raise(thrown, null), nothing, arena);
      Abi.downcall(nothing).invokeExact(stub);
      assertEquals(List.of(thrown, thrown, thrown), log.thrown);
    } finally {
      log.close();
    }
  }

  private static <T> T raise(Error thrown, T result) {
    if (thrown != null) {
      throw thrown;
    }
    return result;
  }

  /** What the package logs. */
  private static final class Log extends Handler {
    private final Logger logger = Logger.getLogger("io.github.fletching");
    private final List<Throwable> thrown = new ArrayList<>();

    Log() {
      logger.addHandler(this);
      logger.setUseParentHandlers(false);
    }

    @Override
    public void publish(LogRecord entry) {
      thrown.add(entry.getThrown());
    }

    @Override
    public void flush() {}

    @Override
    public void close() {
      logger.removeHandler(this);
      logger.setUseParentHandlers(true);
    }
  }
}
