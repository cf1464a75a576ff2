// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.testing.NativeLibraries;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToIntFunction;

/** The hostile peer; tests/hostile/hostile.h declares every function. */
final class Peer {
  static final int STREAM = 3;
  static final int DEVICE_STREAM = 4;
  static final int PRODUCER = 5;

  static final int TOLERATED = 4;

  static final Functions C = NativeLibraries.load("hostile", Functions.class);

  private Peer() {}

  // These are C names, which JNA looks up. Addresses are longs.
  interface Functions extends Library {
    int FletchingHostileCaseCount();

    String FletchingHostileCaseName(int index);

    int FletchingHostileCaseParty(int index);

    int FletchingHostileCaseOutcome(int index);

    int FletchingHostileExportDeviceStream(String name, long out, Pointer message);

    int FletchingHostileStartProducer(String name, long handler, Pointer message);

    int FletchingHostileFinish(Pointer message);
  }

  /** One case of the catalog. */
  static final class Case {
    final String name;
    final int outcome;

    Case(int index) {
      name = C.FletchingHostileCaseName(index);
      outcome = C.FletchingHostileCaseOutcome(index);
    }
  }

  static List<Case> cases(int party) {
    List<Case> cases = new ArrayList<>();
    for (int i = 0; i < C.FletchingHostileCaseCount(); i++) {
      if (C.FletchingHostileCaseParty(i) == party) {
        cases.add(new Case(i));
      }
    }
    assertFalse(cases.isEmpty());
    return cases;
  }

  /** Calls a function that takes a message buffer. */
  static void call(String name, ToIntFunction<Pointer> function) {
    Memory message = new Memory(1024);
    message.clear();
    int code = function.applyAsInt(message);
    assertEquals("0 ", code + " " + message.getString(0, "UTF-8"), name);
  }

  static void finish(String name) {
    call(name, C::FletchingHostileFinish);
  }
}
