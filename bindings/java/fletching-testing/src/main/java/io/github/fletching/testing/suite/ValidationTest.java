// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.abi.Errno.EINVAL;
import static io.github.fletching.abi.Errno.ENOSYS;
import static io.github.fletching.testing.suite.Releases.assertFails;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Function;
import com.sun.jna.Pointer;
import io.github.fletching.Array;
import io.github.fletching.ArrayBuilder;
import io.github.fletching.ArrayStream;
import io.github.fletching.AsyncDeviceStream;
import io.github.fletching.AsyncDeviceStreams;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceArrayStream;
import io.github.fletching.Finding;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.Validation;
import io.github.fletching.Validation.Level;
import io.github.fletching.Validation.Stress;
import io.github.fletching.VendorFunctions;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.NativeLibraries;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Flow;
import java.util.concurrent.ForkJoinPool;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Arrays and streams in the validation layer of libfletching. */
@ExtendWith(LeakCheck.class)
class ValidationTest {
  @BeforeAll
  static void loadLibrary() {
    NativeLibraries.open("libfletching.so.0.1");
  }

  private static Schema schema(String format) {
    return new SchemaBuilder(format).build();
  }

  /** Returns an int32 array without a value buffer, which is invalid unless the array is empty. */
  private static Array ints(long length) {
    return new ArrayBuilder(length).buffers(0, 0).build(null);
  }

  private static List<String> rules(List<Finding> findings) {
    return findings.stream().map(Finding::rule).collect(Collectors.toList());
  }

  @Test
  void checkCorpusArrayFindsRuleOfCase() {
    for (Corpus.Case each : Corpus.cases(Corpus.ARRAY)) {
      try (Schema schema = each.schema();
          DeviceArray array = each.array()) {
        List<Finding> shape = Validation.check(schema, array, Level.SHAPE);
        boolean isClean = each.isAccepted || each.needsData();
        assertEquals(isClean, shape.isEmpty(), () -> each.name + ": " + shape);
        List<Finding> all = Validation.check(schema, array, Level.DATA);
        assertEquals(each.isAccepted, all.isEmpty(), () -> each.name + ": " + all);
        String rule = each.rule();
        assertTrue(rule == null || rules(all).contains(rule), () -> each.name + ": " + all);
      }
      each.finish();
    }
  }

  @Test
  void checkArrayOfOtherTypeDescribesFinding() {
    Array array = ints(0);
    try (Schema ints = schema("i");
        Schema texts = schema("u")) {
      assertEquals(List.of(), Validation.check(ints, array, Level.SHAPE));
      Finding finding = Validation.check(texts, array, Level.SHAPE).get(0);
      assertEquals(
          "array: n_buffers is wrong: expected 3, got 2 (rule array.n-buffers-of-type)",
          finding.toString());
      assertEquals("error producer", finding.severity() + " " + finding.party());
      array.close();
      assertThrows(IllegalStateException.class, () -> Validation.check(ints, array, Level.SHAPE));
    }
  }

  @Test
  void validateStreamReportsMissingBufferAtLevel() {
    assertEquals(List.of(), findings(0, Level.SHAPE));
    assertEquals(List.of(), findings(1, Level.PROTOCOL));
    List<Finding> findings = findings(1, Level.SHAPE);
    assertEquals(List.of("array.buffers-null-only-when"), rules(findings));
    assertTrue(findings.get(0).history().contains("get_next"), findings.get(0).history());
    assertEquals(List.of(), findings(0, Level.SHAPE, Stress.values()));
  }

  private static List<Finding> findings(long length, Level level, Stress... stress) {
    List<Finding> findings = new ArrayList<>();
    try (ArrayStream stream = ArrayStream.of(schema("i"), List.of(ints(length)).iterator())) {
      Validation.validate(stream, level, findings::add, stress);
      stream.schema().close();
      stream.next().close();
    }
    return findings;
  }

  @Test
  void validateStreamUnderStressHidesPrivateData() {
    for (Stress[] stress : List.of(new Stress[0], new Stress[] {Stress.PRIVATE_DATA})) {
      ArrayStream stream = ArrayStream.of(schema("i"), List.of(ints(0)).iterator());
      Validation.validate(stream, Level.SHAPE, finding -> {}, stress);
      Raw batch = Raw.array();
      stream.next().moveTo(batch.address());
      assertEquals(stress.length > 0, batch.get("private_data") < 0); // not an address
      batch.release();
      stream.close();
    }
  }

  @Test
  void validateHandlerAcceptsCorrectStream() {
    List<Finding> findings = new CopyOnWriteArrayList<>();
    AsyncDeviceStream stream = new AsyncDeviceStream(1);
    long handler = Validation.validateHandler(stream.handlerAddress(), Level.SHAPE, findings::add);
    Iterator<DeviceArray> batches = List.of(ints(0).toDevice()).iterator();
    CompletionStage<Void> sent =
        AsyncDeviceStreams.send(
            schema("i"), DeviceType.CPU, batches, ForkJoinPool.commonPool(), handler);
    stream.subscribe(new ClosingSubscriber());
    sent.toCompletableFuture().join();
    stream.close();
    assertEquals(List.of(), findings);
  }

  private static final class ClosingSubscriber implements Flow.Subscriber<DeviceArray> {
    @Override
    public void onSubscribe(Flow.Subscription subscription) {
      subscription.request(Long.MAX_VALUE);
    }

    @Override
    public void onNext(DeviceArray batch) {
      batch.close();
    }

    @Override
    public void onError(Throwable error) {
      throw new AssertionError(error);
    }

    @Override
    public void onComplete() {}
  }

  @Test
  void validateHandlerReportsBatchBeforeSchema() {
    List<Finding> findings = new ArrayList<>();
    AsyncDeviceStream stream = new AsyncDeviceStream(1);
    Pointer handler =
        new Pointer(
            Validation.validateHandler(stream.handlerAddress(), Level.PROTOCOL, findings::add));
    Function onNextTask = Function.getFunction(handler.getPointer(8));
    assertEquals(EINVAL, onNextTask.invokeInt(new Object[] {handler, null, null}));
    Function.getFunction(handler.getPointer(24)).invokeVoid(new Object[] {handler});
    stream.close();
    assertTrue(rules(findings).contains("async-schema.first-and-once"), findings.toString());
    assertFails(EINVAL, () -> Validation.validateHandler(0, Level.SHAPE, findings::add), "handler");
  }

  @Test
  void throwingReportDoesNotPropagate() {
    DeviceArray array = new ArrayBuilder(1).buffers(0, 0).buildOn(DeviceType.CPU, -1, 0, null);
    List<DeviceArray> batches = List.of(array);
    DeviceArrayStream stream =
        DeviceArrayStream.of(schema("i"), DeviceType.CPU, batches.iterator());
    Validation.validate(
        stream,
        Level.SHAPE,
        finding -> {
          throw new IllegalStateException("report");
        });
    stream.schema().close();
    DeviceArray batch = stream.next();
    stream.close();
    assertTrue(Validation.reportLive() > 0);
    batch.close();
    assertThrows(
        IllegalStateException.class, () -> Validation.validate(stream, Level.SHAPE, finding -> {}));
  }

  @Test
  @OnLibraryCopy
  void rejectsLibraryOfOtherLayout() {
    VendorFunctions.replace(
        "FletchingCheckLayout",
        (layout, text, c, d) -> {
          new Pointer(text).setString(0, "layout: expected others");
          return EINVAL;
        },
        () -> {
          assertFails(EINVAL, Validation::reportLive, "layout: expected others");
          assertFails(EINVAL, Validation::reportLive, "layout: expected others");
        });
  }

  @Test
  @OnLibraryCopy
  void rejectsLibraryWithoutValidationLayer() {
    String text = "libfletching.so.0.1 has no FletchingCheckLayout";
    VendorFunctions.without(
        "FletchingCheckLayout", () -> assertFails(ENOSYS, Validation::reportLive, text));
  }
}
