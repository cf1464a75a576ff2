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
 * The validation layer: checks arrays and streams against the rules of the C interfaces.
 *
 * <p>The layer is in libfletching, which the first call loads: from the path in the environment
 * variable {@code FLETCHING_LIBRARY} if it is set, else by the name of the library. It stays
 * loaded. A call that fails to load it tries again the next time.
 *
 * <p>Errors of all methods are {@link FletchingException}s: ENOENT if the library is not found,
 * ENOSYS if it lacks a function, EINVAL if it was built with structs of another layout, ENOTSUP
 * without 64-bit pointers, ENOMEM.
 */
public final class Validation {
  /** How much is checked. Each level includes those before it. */
  public enum Level {
    /** The order of the calls on a stream. For an array, the same as SHAPE. */
    PROTOCOL,
    /** The members of schemas and arrays, and each array against its schema. Reads no buffer. */
    SHAPE,
    /**
     * Also the buffers in memory that the host can read, after a wait for the event of the array.
     * Never reads other device memory. A failed wait is the finding {@code limit.event}. A buffer
     * that is shorter than the structs and the offsets say is read past its end.
     */
    DATA
  }

  /** FLETCHING_LAYOUT of fletching/layout.h with 64-bit pointers. */
  static final long LAYOUT = 0x248b809f578576ddL;

  private static final Library LIBRARY = Library.fletching("validation through libfletching");
  private static final Symbol CHECK_LAYOUT = LIBRARY.symbol("FletchingCheckLayout", "ila");
  private static final Symbol CHECK_ARRAY = LIBRARY.symbol("FletchingCheckArray", "iaaaaa");
  private static final Symbol CHECK_DEVICE_ARRAY =
      LIBRARY.symbol("FletchingCheckDeviceArray", "iaaaaa");
  private static final Symbol VALIDATE_STREAM = LIBRARY.symbol("FletchingValidateStream", "iaaa");
  private static final Symbol VALIDATE_DEVICE_STREAM =
      LIBRARY.symbol("FletchingValidateDeviceStream", "iaaa");
  private static final Symbol VALIDATE_LIVE = LIBRARY.symbol("FletchingValidateLive", "l");

  // struct FletchingValidateOptions, with the text of the message behind it.
  private static final long LEVEL = 8;
  private static final long REPORT = 16;
  private static final long CONTEXT = 24;
  private static final long OPTIONS = 40;
  private static final long TEXT = 1024;

  private static final Map<Long, Consumer<Finding>> REPORTS = new ConcurrentHashMap<>();
  private static final AtomicLong LAST = new AtomicLong();
  private static volatile boolean isChecked; // the layout

  private Validation() {}

  /** The function that receives the findings, made by the first call. */
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
   * Compares an array with its schema. Reads as the other accessors do: another thread that closes
   * one of the two waits.
   *
   * @param schema the schema
   * @param array the array
   * @param level how much is checked
   * @return at most 64 findings, and one more for a failed wait; none for a correct array
   * @throws IllegalStateException for a schema or an array that is closed
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
          run(level, context, (options, text) -> function.call(structs, values, options, 0, text));
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
   * Puts the layer around a stream: from now on it validates every call, and passes it on. No other
   * thread may use the stream meanwhile. An error leaves the stream unchanged.
   *
   * @param stream the stream
   * @param level how much is checked
   * @param report receives each finding, on the thread of the call that broke the rule; two threads
   *     may call it at once. It must not call into the stream. Its exceptions are logged. It is
   *     kept as long as the process, because a late call on a released batch reports as well.
   * @throws IllegalStateException for a stream that is closed
   */
  public static void validate(BatchStream<?> stream, Level level, Consumer<Finding> report) {
    Objects.requireNonNull(report, "report");
    long struct = stream.address();
    boolean isDevice = stream.kind == Kind.DEVICE_ARRAY_STREAM;
    Symbol function = isDevice ? VALIDATE_DEVICE_STREAM : VALIDATE_STREAM;
    long context = LAST.incrementAndGet();
    REPORTS.put(context, report);
    try {
      run(level, context, (options, text) -> function.call(struct, options, text));
    } catch (Throwable refused) {
      REPORTS.remove(context);
      throw refused;
    } finally {
      Reference.reachabilityFence(stream);
    }
  }

  /**
   * Reports each schema and batch of a validated stream that is not released yet, to the report of
   * its stream. Call it when the consumer is done.
   *
   * @return how many there are
   */
  public static long reportLive() {
    load();
    long live = VALIDATE_LIVE.call();
    if (live < 0) {
      throw FletchingException.noMemory("report_live");
    }
    return live;
  }

  /** A function of the library, with its options and the room for its message. */
  private interface Call {
    long run(long options, long text);
  }

  private static void run(Level level, long context, Call call) {
    load();
    long options = Native.allocate(OPTIONS + TEXT, "validate");
    try {
      C.putLong(options, OPTIONS);
      C.putInt(options + LEVEL, level.ordinal());
      C.putAddress(options + REPORT, Report.STUB);
      C.putAddress(options + CONTEXT, context);
      failed((int) call.run(options, options + OPTIONS), options + OPTIONS);
    } finally {
      C.free(options);
    }
  }

  private static void failed(int code, long text) {
    if (code != 0) {
      throw FletchingException.foreign(code, Native.printable(text));
    }
  }

  private static void load() {
    if (isChecked) {
      return;
    }
    if (POINTER != 8) {
      throw FletchingException.unsupported("validate: expected a JVM with 64-bit pointers");
    }
    LIBRARY.load();
    long text = Native.allocate(TEXT, "validate");
    try {
      failed((int) CHECK_LAYOUT.call(LAYOUT, text), text);
    } finally {
      C.free(text);
    }
    isChecked = true;
  }
}
