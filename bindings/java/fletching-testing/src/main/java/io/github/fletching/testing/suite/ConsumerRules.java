// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.ArrayRules.assertError;
import static io.github.fletching.testing.suite.ArrayRules.assertInvalid;
import static io.github.fletching.testing.suite.Raw.assertClosed;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.ArrayOwner;
import io.github.fletching.BatchStream;
import io.github.fletching.FletchingException;
import io.github.fletching.Schema;
import io.github.fletching.testing.suite.Script.Flavor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

/** The rules about reading a foreign stream, for both kinds of streams. */
public abstract class ConsumerRules {
  private static final int EIO = 5;
  private static final int EBUSY = 16;
  private static final int ENOSPC = 28;
  private static final List<String> CALLBACKS =
      List.of("get_schema", "get_next", "get_last_error", "release");

  // --- Results

  @BothStreams(also = "ruleDeviceStreamResultEndChecked")
  void ruleStreamResultEndChecked(Flavor flavor) {
    Script script = new Script(flavor, 2);
    try (BatchStream<? extends ArrayOwner> stream = script.open()) {
      for (long length = 1; length <= 2; length++) {
        try (ArrayOwner batch = stream.next()) {
          assertEquals(length, batch.length());
        }
      }
      assertFalse(stream.hasNext());
      assertFalse(stream.hasNext());
    }
    assertEquals(3, script.calls("get_next"));
    assertClosed(script.foreign.log, "batch", "batch");
    script.assertEnded();
  }

  @BothStreams(also = "ruleDeviceStreamResultReleasedIndependently")
  void ruleStreamResultReleasedIndependently(Flavor flavor) {
    Script script = new Script(flavor, 2);
    BatchStream<? extends ArrayOwner> stream = script.open();
    Schema schema = stream.schema();
    ArrayOwner first = stream.next();
    ArrayOwner second = stream.next();
    stream.close();
    script.assertEnded();
    assertClosed(script.foreign.log);
    assertEquals("i", schema.format());
    assertEquals(2, second.length());
    second.close();
    assertClosed(script.foreign.log, "batch");
    schema.close();
    assertClosed(script.foreign.log, "schema");
    first.close();
    assertClosed(script.foreign.log, "batch");
  }

  // --- Errors

  @Test
  void ruleStreamErrnoRead() {
    Map.of(ENOSPC, ENOSPC, -1, EIO, Integer.MIN_VALUE, EIO)
        .forEach(
            (code, expected) -> {
              keepsErrno(Flavor.PLAIN, code, expected);
              keepsErrno(Flavor.DEVICE, code, expected);
            });
  }

  @Test
  void ruleStreamErrnoRecognized() {
    for (int code : new int[] {1, 22, 12, EIO, Integer.MAX_VALUE}) {
      keepsErrno(Flavor.PLAIN, code, code);
      keepsErrno(Flavor.DEVICE, code, code);
    }
  }

  private void keepsErrno(Flavor flavor, int code, int expected) {
    Script script = new Script(flavor, 3);
    script.codes.put(2, code);
    String text = code > 0 ? Script.TEXT : Script.TEXT + " (code " + code + ")";
    try (BatchStream<? extends ArrayOwner> stream = script.open()) {
      stream.next().close();
      for (int i = 0; i < 2; i++) { // the stream has failed: no callback is called
        assertError(expected, text, stream::next);
        assertError(expected, text, stream::schema);
      }
    }
    assertEquals(2, script.calls("get_next"));
    assertEquals(0, script.calls("get_schema"));
    assertEquals(1, script.calls("get_last_error"));
    script.assertEnded();
  }

  @BothStreams(also = "ruleDeviceStreamErrorTextCopied")
  void ruleStreamErrorTextCopied(Flavor flavor) {
    Script script = new Script(flavor, 0);
    script.codes.put(1, EIO);
    try (BatchStream<? extends ArrayOwner> stream = script.open()) {
      FletchingException error = assertThrows(FletchingException.class, stream::next);
      script.text.setString(0, "overwritten");
      assertEquals(Script.TEXT, error.getMessage());
      assertError(EIO, Script.TEXT, stream::next);
    }
    script.assertEnded();
  }

  @BothStreams(also = "ruleDeviceStreamErrorTextNullAccepted")
  void ruleStreamErrorTextNullAccepted(Flavor flavor) {
    Script script = new Script(flavor, 0);
    script.codes.put(1, ENOSPC);
    script.text = null;
    try (BatchStream<? extends ArrayOwner> stream = script.open()) {
      assertError(ENOSPC, "errno 28", stream::next);
    }
    script.assertEnded();
  }

  @BothStreams(also = "ruleDeviceStreamGetLastErrorOnlyAfterError")
  void ruleStreamGetLastErrorOnlyAfterError(Flavor flavor) {
    Script script = new Script(flavor, 1);
    try (BatchStream<? extends ArrayOwner> stream = script.open()) {
      stream.schema().close();
      stream.next().close();
      assertFalse(stream.hasNext());
      stream.schema().close();
    }
    assertEquals(0, script.calls("get_last_error"));
    script.assertEnded();
  }

  // --- Calls

  @BothStreams(also = "ruleDeviceStreamGetSchemaNotAfterRelease")
  void ruleStreamGetSchemaNotAfterRelease(Flavor flavor) {
    nothingAfterRelease(flavor, 0);
  }

  @BothStreams(also = "ruleDeviceStreamGetNextNotAfterRelease")
  void ruleStreamGetNextNotAfterRelease(Flavor flavor) {
    nothingAfterRelease(flavor, 0);
    Raw released = flavor.room().set("get_next", 8);
    String what = flavor == Flavor.PLAIN ? "stream" : "device stream";
    assertInvalid(
        "import: " + what + " is released: expected a live struct", () -> flavor.wrap(released));
  }

  @BothStreams(also = "ruleDeviceStreamGetLastErrorNotAfterRelease")
  void ruleStreamGetLastErrorNotAfterRelease(Flavor flavor) {
    nothingAfterRelease(flavor, EIO);
  }

  /** The script records calls after the release. The last call before has returned the code. */
  private void nothingAfterRelease(Flavor flavor, int code) {
    Script script = new Script(flavor, 2);
    BatchStream<? extends ArrayOwner> stream = script.open();
    if (code == 0) {
      stream.next().close();
    } else {
      script.codes.put(1, code);
      assertThrows(FletchingException.class, stream::next);
    }
    stream.close();
    for (Executable use : List.<Executable>of(stream::next, stream::hasNext, stream::schema)) {
      assertEquals(
          "stream: closed or moved: expected a live struct",
          assertThrows(IllegalStateException.class, use).getMessage());
    }
    stream.close();
    assertTrue(stream.isReleased());
    script.assertEnded();
  }

  /** A second call while get_next runs, and a close, which leaves the release to the first. */
  @BothStreams(also = "ruleDeviceStreamCallsSerialized")
  @Timeout(60)
  void ruleStreamCallsSerialized(Flavor flavor) throws Exception {
    Script script = new Script(flavor, 2);
    script.left = new CountDownLatch(1);
    BatchStream<? extends ArrayOwner> stream = script.open();
    CompletableFuture<Throwable> reader =
        CompletableFuture.supplyAsync(
            () -> assertThrows(IllegalStateException.class, stream::hasNext));
    script.entered.await();
    assertError(EBUSY, "stream: in use: expected one call at a time", stream::next);
    assertError(EBUSY, "stream: in use: expected one call at a time", stream::schema);
    assertError(EBUSY, "address: in use: expected one call at a time", stream::address);
    assertError(EBUSY, "export: in use: expected one call at a time", () -> stream.moveTo(1));
    stream.close();
    assertEquals(0, script.calls("release"));
    script.left.countDown();
    assertEquals("stream: closed or moved: expected a live struct", reader.get().getMessage());
    assertClosed(script.foreign.log, "batch");
    script.assertEnded();
  }

  /** Every callback finds its script by private_data. */
  @BothStreams(also = "ruleDeviceStreamPrivateDataUntouched")
  void ruleStreamPrivateDataUntouched(Flavor flavor) {
    Script script = new Script(flavor, 1);
    script.codes.put(2, EIO);
    try (BatchStream<? extends ArrayOwner> stream = script.open()) {
      stream.schema().close();
      stream.next().close();
      assertThrows(FletchingException.class, stream::next);
    }
    for (String callback : CALLBACKS) {
      assertEquals(1 + (callback.equals("get_next") ? 1 : 0), script.calls(callback), callback);
    }
    script.assertEnded();
  }

  // --- Callbacks that are NULL

  @BothStreams(also = "ruleDeviceStreamCallbacksSet")
  void ruleStreamCallbacksSet(Flavor flavor) {
    Raw exported = ProducerRules.exported(flavor, List.of(), new ArrayList<>());
    for (String callback : CALLBACKS) {
      assertNotEquals(0, exported.get(callback), callback);
    }
    exported.release();

    boolean plain = flavor == Flavor.PLAIN;
    String struct = plain ? "ArrowArrayStream." : "ArrowDeviceArrayStream.";
    String hint = "fix the producer (rule " + (plain ? "" : "device-") + "stream.callbacks-set)";
    for (String callback : List.of("get_schema", "get_next")) {
      Script script = new Script(flavor, 1);
      String text = struct + callback + ": NULL: expected a callback; hint: " + hint;
      try (BatchStream<? extends ArrayOwner> stream = script.open(callback)) {
        assertError(22, text, callback.equals("get_next") ? stream::next : stream::schema);
      }
      assertEquals(0, script.calls("get_last_error"));
      script.assertEnded();
    }
    Script script = new Script(flavor, 1);
    script.codes.put(1, ENOSPC);
    try (BatchStream<? extends ArrayOwner> stream = script.open("get_last_error")) {
      assertError(ENOSPC, "errno 28", stream::next);
    }
    script.assertEnded();
  }
}
