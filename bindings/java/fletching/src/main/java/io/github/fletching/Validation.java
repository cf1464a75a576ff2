// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * The validation layer: checks arrays, streams and the handlers of async streams against the rules
 * of the C interfaces.
 *
 * <p>The layer is part of libfletching. The first call loads it from the path in the environment
 * variable {@code FLETCHING_LIBRARY}, or by its name if the variable is not set. It stays loaded.
 * After a failure the next call tries again.
 *
 * <p>All methods throw {@link FletchingException}s: ENOENT if the library is not found, ENOSYS if
 * it lacks a function, EINVAL if it was built with another struct layout, ENOTSUP without 64-bit
 * pointers, ENOMEM.
 */
public final class Validation {
  /** The extent of the checks. Each level includes the previous ones. */
  public enum Level {
    /** The order of the calls on a stream. For an array, the same as SHAPE. */
    PROTOCOL,
    /** The members of schemas and arrays, and each array against its schema. Reads no buffer. */
    SHAPE,
    /**
     * Also the buffers in host-readable memory, after a wait for the array's event. Never reads
     * other device memory. A failed wait is the finding {@code limit.event}. A buffer that is
     * shorter than the structs and offsets indicate is read past its end.
     */
    DATA
  }

  /**
   * Unusual behavior that the rules allow. It reveals peers that rely on the usual behavior. A peer
   * that breaks a rule may crash.
   */
  public enum Stress {
    /** Overwrites released structs, and strings and metadata after their lifetime. */
    POISON,
    /** Moves structs to other addresses. A later write to the old address is a finding. */
    MOVE,
    /** Sets {@code private_data} to a value that is not an address. */
    PRIVATE_DATA,
    /** Runs the producer's release callbacks on another thread. */
    THREAD,
    /** Runs the producer's release callbacks after the next call on the stream. */
    DELAY
  }

  /** FLETCHING_LAYOUT of fletching/layout.h with 64-bit pointers. */
  static final long LAYOUT = 0x5a1a609a3aea647dL;

  static final Library LIBRARY = Library.fletching("validation through libfletching");
  private static final Symbol CHECK_LAYOUT = LIBRARY.symbol("FletchingCheckLayout", "ila");
  private static final Symbol CHECK_ARRAY = LIBRARY.symbol("FletchingCheckArray", "iaaaaa");
  private static final Symbol CHECK_DEVICE_ARRAY =
      LIBRARY.symbol("FletchingCheckDeviceArray", "iaaaaa");
  private static final Symbol VALIDATE_STREAM = LIBRARY.symbol("FletchingValidateStream", "iaaa");
  private static final Symbol VALIDATE_DEVICE_STREAM =
      LIBRARY.symbol("FletchingValidateDeviceStream", "iaaa");
  private static final Symbol VALIDATE_HANDLER =
      LIBRARY.symbol("FletchingValidateAsyncHandler", "iaaa");
  private static final Symbol VALIDATE_LIVE = LIBRARY.symbol("FletchingValidateLive", "l");

  // struct FletchingValidateOptions, followed by the message.
  private static final long LEVEL = 8;
  private static final long REPORT = 16;
  private static final long CONTEXT = 24;
  private static final long STRESS = 32;
  private static final long OPTIONS = 40;
  private static final long TEXT = 1024;

  private static final Map<Long, Consumer<Finding>> REPORTS = new ConcurrentHashMap<>();
  private static final AtomicLong LAST = new AtomicLong();
  private static volatile boolean isChecked; // the layout has been checked

  private Validation() {}

  /** The C function that receives the findings, created by the first call. */
  private static final class Report {
    static final long STUB =
        C.stub(
            "FletchingFindingReport",
            "vaa",
            0,
            (context, finding, c, d) -> {
              REPORTS.get(context).accept(new Finding(finding));
              return 0;
            });
  }

  /**
   * Checks an array against its schema. As with other reads, a concurrent close of either one
   * waits.
   *
   * @param schema the type of the array
   * @param array the array to check
   * @param level the extent of the checks
   * @return at most 64 findings, and one more for a failed wait; none for a correct array
   * @throws IllegalStateException if the schema or the array is closed
   */
  public static List<Finding> check(Schema schema, ArrayOwner array, Level level) {
    Symbol function = array.kind == Kind.DEVICE_ARRAY ? CHECK_DEVICE_ARRAY : CHECK_ARRAY;
    List<Finding> findings = new ArrayList<>();
    long context = LAST.incrementAndGet();
    REPORTS.put(context, findings::add);
    try {
      long structs = schema.enter("check");
      try {
        long values = array.enter("check");
        try {
          run(
              "check",
              level,
              0,
              context,
              (options, text) -> function.call(structs, values, options, 0, text));
        } finally {
          array.leave();
        }
      } finally {
        schema.leave();
      }
    } finally {
      REPORTS.remove(context);
    }
    return findings;
  }

  /**
   * Wraps a stream in the layer, which then validates and forwards every call. No other thread may
   * use the stream during this method. An error leaves the stream unchanged.
   *
   * @param stream the stream to wrap
   * @param level the extent of the checks
   * @param report receives each finding, on the thread of the call that broke the rule; two threads
   *     may call it at once. It must not call into the stream. Its exceptions are logged. It is
   *     kept for the lifetime of the process, because a late call on a released batch also reports.
   * @param stress unusual behavior of the layer, none by default
   * @throws IllegalStateException if the stream is closed
   */
  public static void validate(
      BatchStream<?> stream, Level level, Consumer<Finding> report, Stress... stress) {
    long struct = stream.address();
    boolean isDevice = stream.kind == Kind.DEVICE_ARRAY_STREAM;
    Symbol function = isDevice ? VALIDATE_DEVICE_STREAM : VALIDATE_STREAM;
    keep(
        "validate", level, report, stress, (options, text) -> function.call(struct, options, text));
    Reference.reachabilityFence(stream);
  }

  /**
   * Wraps the handler of an async stream's consumer in the layer, such as {@link
   * AsyncDeviceStream#handlerAddress}. The new handler validates every call by the producer, and
   * through the producer passed to the consumer also every call by the consumer. Its release calls
   * the release of the consumer's handler, which must not be released otherwise. An error leaves
   * the handler unchanged.
   *
   * @param handler the address of the handler
   * @param level the extent of the checks
   * @param report as for {@link #validate}
   * @param stress unusual behavior of the layer, none by default
   * @return the address of the new handler, for the producer
   */
  public static long validateHandler(
      long handler, Level level, Consumer<Finding> report, Stress... stress) {
    String operation = "validateHandler";
    load(operation);
    long struct = Native.allocate(POINTER, operation);
    try {
      C.putAddress(struct, handler);
      keep(
          operation,
          level,
          report,
          stress,
          (options, text) -> VALIDATE_HANDLER.call(struct, options, text));
      return C.getAddress(struct);
    } finally {
      C.free(struct);
    }
  }

  /** Keeps the report, unless the function fails. */
  private static void keep(
      String operation, Level level, Consumer<Finding> report, Stress[] stress, Call call) {
    Objects.requireNonNull(report, "report");
    int bits = 0;
    for (Stress each : stress) {
      bits |= 1 << each.ordinal();
    }
    long context = LAST.incrementAndGet();
    REPORTS.put(context, report);
    try {
      run(operation, level, bits, context, call);
    } catch (Throwable refused) {
      REPORTS.remove(context);
      throw refused;
    }
  }

  /**
   * Reports each unreleased schema and batch of validated streams, each handler and each task, to
   * the report of its stream. Call it when the consumer is done.
   *
   * @return the number of unreleased objects
   */
  public static long reportLive() {
    load("reportLive");
    long live = VALIDATE_LIVE.call();
    if (live < 0) {
      throw FletchingException.noMemory("reportLive");
    }
    return live;
  }

  /** A function of the library. It receives its options and a buffer for its message. */
  private interface Call {
    long run(long options, long text);
  }

  private static void run(String operation, Level level, int stress, long context, Call call) {
    load(operation);
    long options = Native.allocate(OPTIONS + TEXT, operation);
    try {
      C.putLong(options, OPTIONS);
      C.putInt(options + LEVEL, level.ordinal());
      C.putAddress(options + REPORT, Report.STUB);
      C.putAddress(options + CONTEXT, context);
      C.putInt(options + STRESS, stress);
      failed(operation, (int) call.run(options, options + OPTIONS), options + OPTIONS);
    } finally {
      C.free(options);
    }
  }

  private static void failed(String operation, int code, long text) {
    if (code != 0) {
      throw FletchingException.foreign(code, Native.printable(text)).named(operation);
    }
  }

  private static void load(String operation) {
    if (isChecked) {
      return;
    }
    try {
      LIBRARY.load();
    } catch (FletchingException e) {
      throw e.named(operation);
    }
    requireLayout(CHECK_LAYOUT, operation);
    isChecked = true;
  }

  /**
   * Compares the layouts of the structs with those of a library.
   *
   * @throws FletchingException EINVAL if they differ
   */
  static void requireLayout(Symbol check, String operation) {
    if (POINTER != 8) {
      throw FletchingException.unsupported(operation + ": expected a JVM with 64-bit pointers");
    }
    long text = Native.allocate(TEXT, operation);
    try {
      failed(operation, (int) check.call(LAYOUT, text), text);
    } finally {
      C.free(text);
    }
  }
}
