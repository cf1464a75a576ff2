// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.jna.Callback;
import com.sun.jna.Library;
import com.sun.jna.Pointer;
import com.sun.jna.Structure;
import com.sun.jna.ptr.LongByReference;
import io.github.fletching.testing.NativeLibraries;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** The conformance suite; tests/conformance/include/fletching/conformance.h declares all of it. */
public final class Conformance {
  static final int CHECKS_SCHEMAS = 1;
  static final int CHECKS_FORMATS = 2;
  static final int CHECKS_ARRAYS = 4;

  private static final Functions C = NativeLibraries.load("conformance", Functions.class);

  private Conformance() {}

  // These are C names, which JNA looks up.
  interface Functions extends Library {
    String FletchingConformanceGroup(int index);

    int FletchingConformanceRun(
        Subject subject, Options options, LongByReference wrong, Pointer message);
  }

  /** Imports a struct and exports another one, or passes it to a handler or a stream. */
  public interface Passage extends Callback {
    /** Returns 0 or an errno value. */
    int call(Pointer context, long in, long out, Pointer message);
  }

  /** Like {@code Passage}, for a schema and an array. */
  public interface Passages extends Callback {
    /** Returns 0 or an errno value. */
    int call(Pointer context, long schema, long array, long outSchema, long out, Pointer message);
  }

  /** Exports the stream of a handler that {@code connect} passes to a producer. */
  public interface Receive extends Callback {
    /** Returns 0 or an errno value. */
    int call(Pointer context, Pointer connect, Pointer connectContext, long out, Pointer message);
  }

  /** Uses an array in place. */
  public interface Use extends Callback {
    /** Returns 0 or an errno value. */
    int call(Pointer context, long array, Pointer message);
  }

  /** Enables later waits on Vulkan events. */
  public interface Vulkan extends Callback {
    /** Returns 0 or an errno value. */
    int call(
        Pointer context,
        long device,
        long queue,
        int setStages,
        long getDeviceProcAddr,
        Pointer message);
  }

  /** Registers a FletchingWaiter. */
  public interface Register extends Callback {
    /** Returns 0 or an errno value. */
    int call(Pointer context, int deviceType, Pointer waiter, Pointer message);
  }

  /** Creates an async producer for the handler. */
  public interface Produce extends Callback {
    /** Returns 0 or an errno value. */
    int call(Pointer context, long handler, Pointer out, Pointer message);
  }

  /** Creates an async consumer that reports to {@code notify}. */
  public interface Consume extends Callback {
    /** Returns 0 or an errno value. */
    int call(Pointer context, Pointer notify, Pointer notifyContext, Pointer out, Pointer message);
  }

  /** Takes a struct or a number. */
  public interface Give extends Callback {
    /** Called once for each value. */
    void call(Pointer self, long what);
  }

  /** Takes a batch whose extraction fails with the error code. */
  public interface GiveFailing extends Callback {
    /** Called once for each batch. */
    void call(Pointer self, long batch, int code);
  }

  /** Takes an errno value. */
  public interface Code extends Callback {
    /** Called once for each error. */
    void call(Pointer self, int code);
  }

  /** A callback without arguments or result. */
  public interface Act extends Callback {
    /** Performs the action. */
    void call(Pointer self);
  }

  /** A query with an integer result. */
  public interface Ask extends Callback {
    /** Returns the result. */
    int call(Pointer self);
  }

  /** The C struct FletchingSubjectProducer. */
  @Structure.FieldOrder({
    "size",
    "self",
    "schema",
    "batch",
    "failingBatch",
    "end",
    "fail",
    "run",
    "state",
    "release"
  })
  public static final class Producer extends Structure {
    public long size = size();
    public Pointer self;
    public Give schema;
    public Give batch;
    public GiveFailing failingBatch;
    public Act end;
    public Code fail;
    public Ask run;
    public Ask state;
    public Act release;

    /** Wraps the suite's table, which {@code write} fills. */
    public Producer(Pointer table) {
      super(table);
    }
  }

  /** The C struct FletchingSubjectConsumer. */
  @Structure.FieldOrder({
    "size",
    "self",
    "handler",
    "request",
    "take",
    "drop",
    "cancel",
    "refuseNext",
    "state",
    "release"
  })
  public static final class Consumer extends Structure {
    public long size = size();
    public Pointer self;
    public long handler;
    public Give request;
    public Ask take;
    public Ask drop;
    public Act cancel;
    public Code refuseNext;
    public Ask state;
    public Act release;

    /** Wraps the suite's table, which {@code write} fills. */
    public Consumer(Pointer table) {
      super(table);
    }
  }

  /**
   * The C struct FletchingSubject, with the members that Java fills in. A null function is not
   * supported.
   */
  @Structure.FieldOrder({
    "size",
    "name",
    "context",
    "promises",
    "schema",
    "array",
    "child",
    "stream",
    "deviceStream",
    "tensor",
    "legacyTensor",
    "receive",
    "send",
    "synchronize",
    "isReady",
    "waitOn",
    "exportWithEvent",
    "releaseAfter",
    "useVulkan",
    "registerWaiter",
    "producer",
    "consumer"
  })
  public static final class Subject extends Structure {
    public long size;
    public String name;
    public Pointer context;
    public int promises;
    public Passage schema;
    public Passages array;
    public Passages child; // outSchema is the child's index
    public Passage stream;
    public Passage deviceStream;
    public Passage tensor;
    public Passage legacyTensor;
    public Receive receive;
    public Passage send; // out is a handler
    public Use synchronize;
    public Passage isReady; // out is an int
    public Passage waitOn; // here and below: in is a stream
    public Passage exportWithEvent;
    public Passage releaseAfter;
    public Vulkan useVulkan;
    public Register registerWaiter;
    public Produce producer;
    public Consume consumer;

    Subject(String name, int promises) {
      this.name = name;
      this.promises = promises;
      size = size();
    }
  }

  /** Receives a result, which consists of six strings. */
  public interface Report extends Callback {
    /** Called after each case. */
    void call(Pointer context, Pointer result);
  }

  /** The C struct FletchingConformanceOptions. */
  @Structure.FieldOrder({"size", "group", "caseName", "report", "context"})
  public static final class Options extends Structure {
    public long size;
    public String group;
    public String caseName;
    public Report report;
    public Pointer context;

    Options(String group, String caseName, Report report) {
      this.group = group;
      this.caseName = caseName;
      this.report = report;
      size = size();
    }
  }

  /** The results of a run. */
  public static final class Results {
    /** Describes each wrong result. */
    public final List<String> wrong = new ArrayList<>();

    /** The number of results by verdict. */
    public final Map<String, Integer> counts = new TreeMap<>();

    private void add(Pointer context, Pointer result) {
      String[] texts =
          Stream.of(result.getPointerArray(0, 6))
              .map(text -> text.getString(0, "UTF-8"))
              .toArray(String[]::new);
      counts.merge(texts[2], 1, Integer::sum);
      if (texts[2].equals("wrong")) {
        String rule = texts[4].isEmpty() ? "" : " (rule " + texts[4] + ")";
        wrong.add(texts[0] + " " + texts[1] + ": " + texts[5] + rule);
      }
    }
  }

  /** Returns the names of the groups. */
  static Stream<String> groups() {
    return IntStream.iterate(0, i -> i + 1)
        .mapToObj(C::FletchingConformanceGroup)
        .takeWhile(name -> name != null);
  }

  /** Runs a group on the subject; a null case name runs all its cases. */
  public static Results run(Subject subject, String group, String caseName) {
    Results results = new Results();
    LongByReference wrong = new LongByReference();
    Options options = new Options(group, caseName, results::add);
    Peer.call(group, m -> C.FletchingConformanceRun(subject, options, wrong, m));
    assertEquals(wrong.getValue(), results.wrong.size());
    return results;
  }
}
