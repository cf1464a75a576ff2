// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static io.github.fletching.testing.suite.Releases.errorOf;
import static io.github.fletching.testing.suite.Releases.onThread;
import static io.github.fletching.testing.suite.StandinEventsTest.onBoth;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.Gson;
import com.google.gson.annotations.SerializedName;
import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.DeviceStream;
import io.github.fletching.FletchingException;
import io.github.fletching.OnCapture;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.NativeLibraries;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The vectors of tests/events, which the C core also runs, on the stand-ins. */
@Timeout(120)
class StandinVectorsTest {
  private static final Map<String, Integer> NUMBERS =
      Map.of("", 0, "EIO", 5, "EBUSY", 16, "EINVAL", 22, "ENOTSUP", 95);

  /** tests/events/README.md explains the keys. */
  static final class Vector {
    String name;
    String operation;
    List<String> current = List.of("own", "none", "other");
    String memory = "device";
    String event;
    String stream = "own";

    @SerializedName("behind_gate")
    boolean isBehindGate;

    @SerializedName("captured")
    boolean isCaptured;

    @SerializedName("on_capture")
    String onCapture = "refuse";

    @SerializedName("other_runtime")
    boolean isOfOtherRuntime;

    List<String> faults = List.of();
    String error = "";
    List<String> mentions = List.of();
    Boolean answer;
    Boolean blocks;
    String released = "";
    int leaked;
  }

  private static final class File {
    Map<String, Map<String, String>> functions;
    Map<String, Map<String, String>> errors;
    List<Vector> vectors;
  }

  private static File read() {
    try {
      return new Gson()
          .fromJson(
              Files.readString(NativeLibraries.repository().resolve("tests/events/vectors.json")),
              File.class);
    } catch (IOException e) {
      throw new IllegalStateException("tests/events/vectors.json cannot be read", e);
    }
  }

  @Test
  void everyVectorHolds() {
    File file = read();
    onBoth(
        gpu -> {
          for (Vector vector : file.vectors) {
            for (String current : vector.current) {
              try {
                new VectorRun(file, gpu, vector).run(current);
              } catch (AssertionError | RuntimeException e) {
                throw new AssertionError(
                    gpu.type + ": " + vector.name + "; current: " + current, e);
              }
            }
          }
        });
  }

  /** One run of one vector. */
  private static final class VectorRun {
    private final Gpu gpu;
    private final Vector vector;
    private final Map<String, String> functions;
    private final Map<String, String> errors;
    private final Gpu.Gated gated;
    private final Releases releases = new Releases();
    private final long leaked = DeviceArray.pendingReleases().leaked();
    private Boolean isReady;

    VectorRun(File file, Gpu gpu, Vector vector) {
      this.gpu = gpu;
      this.vector = vector;
      functions = file.functions.get(gpu.isCuda ? "cuda" : "hip");
      errors = file.errors.get(gpu.isCuda ? "cuda" : "hip");
      gated = gpu.new Gated();
    }

    void run(String current) {
      long handle = handle();
      gpu.recordEvent(gated.event, gated.producer);
      gpu.synchronizeStream(gated.producer);
      gated.shut();
      if (vector.isBehindGate && !vector.stream.equals("own")) {
        gpu.recordEvent(gated.event, gated.producer);
        try (DeviceArray behind = Releases.awaited(gpu.type, gated.event)) {
          behind.waitOn(gpu.stream(handle));
        }
      }
      DeviceArray array = array();
      if (vector.isCaptured) {
        gpu.beginCapture(handle);
      }
      FletchingException error = call(current, array, stream(handle));
      checkAnswer(error, array, handle);
      checkRelease(array);
      if (vector.isCaptured) {
        gpu.destroyGraph(gpu.endCapture(handle));
      }
      gated.open();
      if (vector.released.equals("behind the gate")
          || vector.released.equals("after the capture")) {
        releases.waitFor(1);
      }
      assertEquals(vector.leaked, DeviceArray.pendingReleases().leaked() - leaked, "leaked");
      array.close();
      gpu.synchronizeStream(gated.producer);
      gated.end();
      releases.assertCount(vector.released.equals("never") ? 0 : 1);
    }

    private long handle() {
      switch (vector.stream) {
        case "null":
          return 0;
        case "legacy":
          return 1;
        case "per_thread":
          return 2;
        default:
          return vector.isBehindGate ? gated.producer : gated.consumer;
      }
    }

    private DeviceStream stream(long handle) {
      DeviceType other = gpu.isCuda ? DeviceType.ROCM : DeviceType.CUDA;
      DeviceStream stream = DeviceStream.of(vector.isOfOtherRuntime ? other : gpu.type, handle);
      switch (vector.onCapture) {
        case "external":
          return stream.onCapture(OnCapture.EXTERNAL);
        case "keep":
          return stream.onCapture(OnCapture.KEEP);
        default:
          return stream;
      }
    }

    private DeviceArray array() {
      if ("pending".equals(vector.event)) {
        gpu.recordEvent(gated.event, gated.producer);
      }
      DeviceType pinned = gpu.isCuda ? DeviceType.CUDA_HOST : DeviceType.ROCM_HOST;
      boolean isOfHost = vector.memory.equals("host");
      DeviceType type =
          isOfHost ? DeviceType.CPU : vector.memory.equals("pinned") ? pinned : gpu.type;
      long event = vector.event == null ? 0 : Pointer.nativeValue(gated.event);
      return releases.array(type, isOfHost ? -1 : 0, event);
    }

    private FletchingException call(String current, DeviceArray array, DeviceStream stream) {
      FletchingException[] error = {null};
      Runnable unchanged =
          () -> {
            long before = gpu.current();
            error[0] = errorOf(() -> operation(array, stream));
            assertEquals(before, gpu.current(), "something else is current");
          };
      setFaults();
      switch (current) {
        case "none":
          onThread(unchanged);
          break;
        case "other":
          gpu.openDevice(1);
          unchanged.run();
          gpu.closeDevice(1);
          break;
        default:
          unchanged.run();
      }
      gpu.resetFaults();
      return error[0];
    }

    private void operation(DeviceArray array, DeviceStream stream) {
      switch (vector.operation) {
        case "ready":
          isReady = false; // also after an error
          isReady = array.isReady();
          break;
        case "synchronize":
          array.synchronize();
          break;
        case "wait_on":
          array.waitOn(stream);
          break;
        case "export_with_event":
          array.exportWithEvent(stream);
          break;
        case "release_after":
          array.releaseAfter(stream);
          break;
        default:
          throw new IllegalStateException(vector.operation);
      }
    }

    private void setFaults() {
      StringBuilder all = new StringBuilder();
      for (String fault : vector.faults) {
        String[] parts = fault.split(":");
        all.append(all.length() == 0 ? "" : ",").append(functions.get(parts[0]));
        all.append(":").append(parts[1]).append(":").append(errors.get(parts[2]));
      }
      if (all.length() > 0) {
        gpu.setFault(all.toString());
      }
    }

    private void checkAnswer(FletchingException error, DeviceArray array, long handle) {
      String text = String.valueOf(error);
      assertEquals(NUMBERS.get(vector.error), error == null ? 0 : error.errno(), text);
      for (String part : vector.mentions) {
        String name = functions.getOrDefault(part, part);
        assertTrue(text.contains(name), () -> "expected " + name + " in: " + text);
      }
      if (vector.blocks != null) {
        assertEquals(vector.blocks, gated.isBlocked(handle == 1 ? 0 : handle), "blocks");
      }
      if (vector.answer != null) {
        gpu.call("FletchingStandinSettle");
        assertEquals(vector.answer, isReady != null ? isReady : array.isReady(), "ready");
      }
    }

    private void checkRelease(DeviceArray array) {
      assertEquals(!vector.released.isEmpty(), array.isReleased(), "released for its caller");
      switch (vector.released) {
        case "at once":
          releases.assertCount(1);
          break;
        case "later":
          releases.waitFor(1);
          break;
        default:
          overtake();
          releases.assertCount(0);
      }
    }

    /** Waits until the reaper has checked every array that was deferred earlier. */
    private void overtake() {
      Releases free = new Releases();
      long stream = gpu.makeStream();
      free.array(gpu.type).releaseAfter(gpu.stream(stream));
      free.waitFor(1);
      gpu.destroyStream(stream);
    }
  }
}
