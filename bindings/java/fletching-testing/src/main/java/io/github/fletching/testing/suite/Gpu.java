// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.NativeLibraries;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * CUDA and HIP behind common names, so that one test covers both on the stand-ins (tests/standin).
 * Every result is checked. Integers and addresses are longs.
 */
final class Gpu {
  private static final Pattern FUNCTION = Pattern.compile("\\b(cu|hip)[A-Z]\\w*");

  final DeviceType type;
  final boolean isCuda;
  final String error;
  final String query;
  final String record;
  final String synchronize;
  final String exchangeMode;
  final String isCapturing;
  final String initialize;
  private final NativeLibrary library;
  private final String prefix;

  private Gpu(DeviceType type, String file, String prefix, String error) {
    this.type = type;
    this.prefix = prefix;
    this.error = error;
    isCuda = prefix.equals("cu");
    library = NativeLibraries.open(file);
    query = prefix + "EventQuery";
    record = prefix + "EventRecord";
    synchronize = prefix + "EventSynchronize";
    exchangeMode = prefix + "ThreadExchangeStreamCaptureMode";
    isCapturing = prefix + "StreamIsCapturing";
    initialize = prefix + "Init";
    ok(initialize, 0);
  }

  /** Returns the CUDA stand-in from a subfolder of the library folder. */
  static Gpu cuda(String folder) {
    return new Gpu(DeviceType.CUDA, folder + "/libcuda.so.1", "cu", "CUDA_ERROR_LAUNCH_FAILED");
  }

  static Gpu hip(String folder) {
    return new Gpu(DeviceType.ROCM, folder + "/libamdhip64.so.7", "hip", "hipErrorLaunchFailure");
  }

  // --- Calls

  static Object[] boxed(long... arguments) {
    Object[] values = new Object[arguments.length];
    for (int i = 0; i < values.length; i++) {
      values[i] = arguments[i];
    }
    return values;
  }

  long call(String name, long... arguments) {
    return library.getFunction(name).invokeLong(boxed(arguments));
  }

  long call(String name, String text) {
    return library.getFunction(name).invokeLong(new Object[] {text});
  }

  void ok(String name, long... arguments) {
    assertEquals(0, (int) call(name, arguments), name);
  }

  /** Returns the value that a function writes through its first argument, up to 8 bytes. */
  long get(String name, long... arguments) {
    return getAt(0, name, arguments);
  }

  private long getAt(int at, String name, long... arguments) {
    Memory out = new Memory(8);
    out.clear();
    long[] all = new long[arguments.length + 1];
    System.arraycopy(arguments, 0, all, 0, at);
    all[at] = Pointer.nativeValue(out);
    System.arraycopy(arguments, at, all, at + 1, arguments.length - at);
    ok(name, all);
    return out.getLong(0);
  }

  // --- Devices, streams, events, memory

  /** Makes the device current on the calling thread. */
  void openDevice(int device) {
    if (isCuda) {
      ok("cuCtxPushCurrent_v2", get("cuDevicePrimaryCtxRetain", device));
    } else {
      ok("hipSetDevice", device);
    }
  }

  void closeDevice(int device) {
    if (isCuda) {
      get("cuCtxPopCurrent_v2");
      ok("cuDevicePrimaryCtxRelease_v2", device);
    } else {
      ok("hipSetDevice", 0);
    }
  }

  /** Returns the thread's current context or device. */
  long current() {
    return get(isCuda ? "cuCtxGetCurrent" : "hipGetDevice");
  }

  DeviceStream stream(long handle) {
    return DeviceStream.of(type, handle);
  }

  /**
   * Creates a stream; the legacy default stream synchronizes with it only if {@code blocking} is
   * set.
   */
  long makeStream(boolean blocking) {
    return get(isCuda ? "cuStreamCreate" : "hipStreamCreateWithFlags", blocking ? 0 : 1);
  }

  long makeStream() {
    return makeStream(false);
  }

  void synchronizeStream(long stream) {
    ok(prefix + "StreamSynchronize", stream);
  }

  void destroyStream(long stream) {
    synchronizeStream(stream);
    ok(isCuda ? "cuStreamDestroy_v2" : "hipStreamDestroy", stream);
  }

  boolean isIdle(long stream) {
    return (int) call(prefix + "StreamQuery", stream) == 0;
  }

  /** Creates an event; the returned memory contains its handle. */
  private Memory makeEvent() {
    Memory handle = new Memory(8);
    handle.setLong(0, get(isCuda ? "cuEventCreate" : "hipEventCreateWithFlags", 2));
    return handle;
  }

  void recordEvent(Memory event, long stream) {
    ok(record, event.getLong(0), stream);
  }

  private void destroyEvent(Memory event) {
    ok(isCuda ? "cuEventDestroy_v2" : "hipEventDestroy", event.getLong(0));
  }

  /** Allocates a word that a stream can wait on. */
  Pointer makeWord() {
    long word = isCuda ? get("cuMemHostAlloc", 4, 2) : get("hipExtMallocWithFlags", 8, 2);
    return new Pointer(word);
  }

  void freeWord(Pointer word) {
    ok(isCuda ? "cuMemFreeHost" : "hipFree", Pointer.nativeValue(word));
  }

  /** Makes a stream wait until the word is 1. */
  void waitFor(long stream, Pointer word) {
    long address = Pointer.nativeValue(word);
    if (isCuda) {
      address = get("cuMemHostGetDevicePointer_v2", address, 0);
      ok("cuStreamWaitValue32_v2", stream, address, 1, 0);
    } else {
      ok("hipStreamWaitValue32", stream, address, 1, 0, 0xFFFFFFFFL);
    }
  }

  // --- Captures

  /** Begins a capture in global mode. */
  void beginCapture(long stream) {
    ok(prefix + "StreamBeginCapture" + (isCuda ? "_v2" : ""), stream, 0);
  }

  /** Ends a valid capture and returns the graph. */
  long endCapture(long stream) {
    return getAt(1, prefix + "StreamEndCapture", stream);
  }

  void abandonCapture(long stream) {
    Memory graph = new Memory(8);
    int code = (int) call(prefix + "StreamEndCapture", stream, Pointer.nativeValue(graph));
    assertNotEquals(0, code, "the capture was not invalidated");
  }

  void destroyGraph(long graph) {
    ok(prefix + "GraphDestroy", graph);
  }

  long instantiate(long graph) {
    return get(prefix + "GraphInstantiateWithFlags", graph, 0);
  }

  void launch(long executable, long stream) {
    ok(prefix + "GraphLaunch", executable, stream);
  }

  void destroyExecutable(long executable) {
    ok(prefix + "GraphExecDestroy", executable);
  }

  // --- Control

  /** Returns the counts of live objects: struct FletchingStandinCounts. */
  List<Long> alive() {
    Memory counts = new Memory(80);
    call("FletchingStandinLeaks", Pointer.nativeValue(counts));
    List<Long> values = new ArrayList<>();
    for (long value : counts.getLongArray(0, 10)) {
      values.add(value);
    }
    return values;
  }

  long events() {
    return alive().get(3);
  }

  /** Makes calls fail until the faults are reset: {@code function:n:error}. */
  void setFault(String fault) {
    assertEquals(0, (int) call("FletchingStandinSetFault", fault), fault);
  }

  void resetFaults() {
    call("FletchingStandinResetFaults");
  }

  long calls(String function) {
    return call("FletchingStandinCalls", function);
  }

  long staleHandles() {
    return call("FletchingStandinStaleHandles");
  }

  /** Waits until no thread is releasing an array. */
  void settleReleases() {
    while (call("FletchingStandinRelaxedThreads") > 0
        || DeviceArray.pendingReleases().running() > 0) {
      Releases.pause();
    }
  }

  /** Returns the names of the functions that were called. */
  List<String> called() {
    long size = call("FletchingStandinReport", 0, 0) + 4096;
    Memory text = new Memory(size);
    call("FletchingStandinReport", Pointer.nativeValue(text), size);
    Matcher matcher = FUNCTION.matcher(text.getString(0));
    List<String> names = new ArrayList<>();
    while (matcher.find()) {
      names.add(matcher.group());
    }
    return names;
  }

  /** An open device with an event, a consumer stream, and a producer stream behind a gate. */
  final class Gated {
    private final List<Long> before;
    private final Pointer word;
    final Memory event; // contains the handle
    final long producer;
    final long consumer;

    Gated() {
      settleReleases();
      openDevice(0);
      before = alive();
      word = makeWord();
      word.setInt(0, 0);
      event = makeEvent();
      producer = makeStream();
      consumer = makeStream();
    }

    /** Blocks later work on the producer stream until {@code open}. */
    void shut() {
      word.setInt(0, 0);
      waitFor(producer, word);
    }

    void open() {
      word.setInt(0, 1);
    }

    boolean isBlocked(long stream) {
      call("FletchingStandinSettle");
      return !isIdle(stream);
    }

    DeviceStream ofProducer() {
      return stream(producer);
    }

    DeviceStream ofConsumer() {
      return stream(consumer);
    }

    /** Destroys everything; expects the same number of live objects as at the start. */
    void end() {
      open();
      destroyStream(producer);
      destroyStream(consumer);
      destroyEvent(event);
      freeWord(word);
      settleReleases();
      assertEquals(before, alive(), "something leaks");
      closeDevice(0);
    }
  }
}
