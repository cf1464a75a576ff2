// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.Pretending;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * A driver of OpenCL with one event, which writes down its calls, and succeeds unless a test sets a
 * result.
 */
final class PretendedOpencl {
  static final long EVENT = 0x1_0000_0020L;
  static final long QUEUE = 0x1_0000_0030L;
  static final long PRODUCER = 0x1_0000_0040L; // the queue of the event
  static final long CONTEXT = 0x1_0000_0050L;
  static final int OF_EVENT_CONTEXT = 0x11d4;
  static final int OF_EVENT_QUEUE = 0x11d0;
  static final int OF_EVENT_STATE = 0x11d3;
  static final int OF_QUEUE_CONTEXT = 0x1090;

  private final List<String> calls = new CopyOnWriteArrayList<>();

  /** What it answers, by the property; nothing is written for one that is not here. */
  final Map<Integer, Long> properties = new ConcurrentHashMap<>();

  final Map<String, Integer> results = new ConcurrentHashMap<>();
  final Memory handle = new Memory(8);

  PretendedOpencl() {
    handle.setLong(0, EVENT);
    properties.put(OF_EVENT_STATE, 0L);
    properties.put(OF_EVENT_QUEUE, PRODUCER);
    properties.put(OF_EVENT_CONTEXT, CONTEXT);
    properties.put(OF_QUEUE_CONTEXT, CONTEXT);
    Pretending.libraries(Map.of("libOpenCL.so.1", true));
    for (String name : List.of("clGetEventInfo", "clGetCommandQueueInfo")) {
      Pretending.replace(
          name,
          (of, what, size, out, sizeOut) -> {
            answer((int) what, size, new Pointer(out));
            return call(name, of, what, size, sizeOut);
          });
    }
    Pretending.replace(
        "clWaitForEvents", (count, list, c, d, e) -> call("clWaitForEvents", count, list));
    Pretending.replace(
        "clEnqueueBarrierWithWaitList",
        (queue, count, list, out, e) ->
            call("clEnqueueBarrierWithWaitList", queue, count, list, out));
    Pretending.replace(
        "clEnqueueMarkerWithWaitList",
        (queue, count, list, out, e) -> {
          long code = call("clEnqueueMarkerWithWaitList", queue, count, list);
          new Pointer(out).setLong(0, code == 0 ? EVENT : 0);
          return code;
        });
    Pretending.replace("clFlush", (queue, b, c, d, e) -> call("clFlush", queue));
    Pretending.replace("clFinish", (queue, b, c, d, e) -> call("clFinish", queue));
    Pretending.replace("clReleaseEvent", (event, b, c, d, e) -> call("clReleaseEvent", event));
  }

  private void answer(int what, long size, Pointer out) {
    Long value = properties.get(what);
    if (value != null && size == 4) {
      out.setInt(0, value.intValue());
    } else if (value != null) {
      out.setLong(0, value);
    }
  }

  private int call(String function, long... arguments) {
    calls.add(text(function, arguments));
    return results.getOrDefault(function, 0);
  }

  static String text(String function, long... arguments) {
    StringBuilder text = new StringBuilder(function);
    for (long argument : arguments) {
      text.append(" 0x").append(Long.toHexString(argument));
    }
    return text.toString();
  }

  static String ofEvent(int what, long size) {
    return text("clGetEventInfo", EVENT, what, size, 0);
  }

  static String ofQueue() {
    return text("clGetCommandQueueInfo", QUEUE, OF_QUEUE_CONTEXT, 8, 0);
  }

  /** The calls since the last time. */
  List<String> take() {
    List<String> taken = List.copyOf(calls);
    calls.removeAll(taken);
    return taken;
  }

  /** How often the state of the event was asked for since the last {@link #take}. */
  long queries() {
    return calls.stream().filter(ofEvent(OF_EVENT_STATE, 4)::equals).count();
  }

  DeviceArray array() {
    return Releases.awaited(DeviceType.OPENCL, handle);
  }

  static DeviceStream stream() {
    return DeviceStream.of(DeviceType.OPENCL, QUEUE);
  }
}
