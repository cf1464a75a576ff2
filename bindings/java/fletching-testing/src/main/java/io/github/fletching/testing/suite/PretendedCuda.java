// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.Pretending;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * A driver of CUDA with one stream and one thread's contexts, which writes down its calls: the
 * names without {@code cu}, and what they are passed.
 */
final class PretendedCuda {
  static final long EVENT = 0xe;
  static final long STREAM = 0x1_0000_0005L;
  static final long CREATED = 0xc; // a context that is not a primary one
  static final int DEVICE = 3;
  static final long PRIMARY = 0xd; // the context of the device

  private final List<String> calls = new ArrayList<>();
  private final Deque<Long> current = new ArrayDeque<>();
  private final Map<String, Deque<Integer>> results = new HashMap<>();
  final Map<Long, Long> numbers = new HashMap<>(); // of the contexts that are there
  boolean isActive = true; // the primary context
  long ofStream = PRIMARY; // its context
  int capture; // the status of the stream
  Runnable onRecord = () -> {}; // what happens meanwhile
  private int mode;
  private final Memory handle = new Memory(8);

  PretendedCuda() {
    handle.setLong(0, EVENT);
    numbers.put(PRIMARY, 70L);
    numbers.put(CREATED, 71L);
    Pretending.libraries(Map.of("libcuda.so.1", true));
    on("Init", (flags, b, c) -> "" + (int) flags);
    on("CtxGetCurrent", (out, b, c) -> write(out, current()));
    on("CtxPushCurrent_v2", (context, b, c) -> push(context));
    on("CtxPopCurrent_v2", (out, b, c) -> write(out, current.pop()));
    on("CtxGetDevice", (out, b, c) -> writeInt(out, DEVICE));
    on("DeviceGet", (out, ordinal, c) -> writeInt(out, (int) ordinal) + (int) ordinal);
    on(
        "DevicePrimaryCtxGetState",
        (device, flags, active) -> {
          new Pointer(flags).setInt(0, 5);
          return writeInt(active, isActive ? 1 : 0) + (int) device;
        });
    on("DevicePrimaryCtxRetain", (out, device, c) -> write(out, PRIMARY) + (int) device);
    on("DevicePrimaryCtxRelease_v2", (device, b, c) -> "" + (int) device);
    on("StreamGetCtx", (stream, out, c) -> write(out, ofStream) + hex(stream));
    on("StreamIsCapturing", (stream, out, c) -> writeInt(out, capture) + hex(stream));
    on("StreamWaitEvent", (stream, event, flags) -> hex(stream) + " " + hex(event) + " " + flags);
    on("EventCreate", (out, flags, c) -> write(out, EVENT) + (int) flags);
    on(
        "EventRecord",
        (event, stream, c) -> {
          onRecord.run();
          return hex(event) + " " + hex(stream);
        });
    on(
        "EventRecordWithFlags",
        (event, stream, flags) -> hex(event) + " " + hex(stream) + " " + (int) flags);
    on("EventQuery", (event, b, c) -> hex(event));
    on("EventSynchronize", (event, b, c) -> hex(event));
    on("EventDestroy_v2", (event, b, c) -> hex(event));
    on(
        "ThreadExchangeStreamCaptureMode",
        (inOut, b, c) -> {
          int before = mode;
          mode = new Pointer(inOut).getInt(0);
          return writeInt(inOut, before) + mode;
        });
    Pretending.replace("cuCtxGetId", (context, out, c, d, e) -> numberOf(context, out));
    Pretending.replace("cuGetErrorName", (code, out, c, d, e) -> 1);
    Pretending.replace("cuGetErrorString", (code, out, c, d, e) -> 1);
  }

  /** A function of at most three arguments; returns what is written down of them. */
  private interface Body {
    String call(long first, long second, long third);
  }

  private void on(String name, Body body) {
    Pretending.replace("cu" + name, (a, b, c, d, e) -> call(name, () -> body.call(a, b, c)));
  }

  /** One step: a thread that sees what a call has changed finds the call in the list. */
  private synchronized int call(String name, Supplier<String> body) {
    int result = next(name);
    if (result == 0 || result == 719) { // with which a way back may have been successful
      write(name + " " + body.get());
    } else {
      write(name + " failed");
    }
    return result;
  }

  private synchronized void write(String call) {
    calls.add(call.trim());
  }

  private synchronized int next(String name) {
    Deque<Integer> left = results.get(name);
    return left == null || left.isEmpty() ? 0 : left.pop();
  }

  private long numberOf(long context, long out) {
    write("CtxGetId " + hex(context));
    int result = next("CtxGetId");
    Long number = numbers.get(context == 0 ? current() : context);
    if (result == 0 && number != null) {
      new Pointer(out).setLong(0, number);
      return 0;
    }
    return result != 0 ? result : context == 0 ? 201 : 709;
  }

  private synchronized long current() {
    return current.isEmpty() ? 0 : current.peek();
  }

  private synchronized String push(long context) {
    current.push(context);
    return hex(context);
  }

  private static String write(long out, long value) {
    new Pointer(out).setLong(0, value);
    return "";
  }

  private static String writeInt(long out, int value) {
    new Pointer(out).setInt(0, value);
    return "";
  }

  private static String hex(long value) {
    return Long.toHexString(value);
  }

  /** Lets the next calls of a function return these results. */
  synchronized void returns(String function, Integer... codes) {
    results.put(function, new ArrayDeque<>(List.of(codes)));
  }

  /** Makes the context the only one of the thread; none for 0. */
  synchronized void use(long context) {
    current.clear();
    if (context != 0) {
      current.push(context);
    }
  }

  /** The calls since the last time, with commas between. */
  synchronized String take() {
    String taken = String.join(", ", calls);
    calls.clear();
    return taken;
  }

  /** What the thread has after an operation: its context and its mode. */
  synchronized String left() {
    return (current.isEmpty() ? "none" : hex(current.peek())) + " " + mode;
  }

  DeviceArray incoming() {
    return new Releases().array(DeviceType.CUDA, DEVICE, Pointer.nativeValue(handle));
  }

  static DeviceStream stream() {
    return DeviceStream.of(DeviceType.CUDA, STREAM);
  }
}
