// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertFalse;

import com.sun.jna.Library;
import com.sun.jna.Pointer;
import io.github.fletching.DeviceArray;
import io.github.fletching.Schema;
import io.github.fletching.testing.NativeLibraries;
import java.util.ArrayList;
import java.util.List;

/** The cases of the corpus; tests/corpus/corpus.h defines every function. */
public final class Corpus {
  public static final int SCHEMA = 1;
  public static final int ARRAY = 2;

  private static final int ACCEPT = 1;

  private static final Functions C = NativeLibraries.load("corpus", Functions.class);

  private Corpus() {}

  // The names are C's: JNA looks them up. Addresses are a long.
  interface Functions extends Library {
    int FletchingCorpusCount();

    String FletchingCorpusName(int index);

    int FletchingCorpusKind(int index);

    int FletchingCorpusVerdict(int index);

    String FletchingCorpusException(int index, String library);

    String FletchingCorpusText(int index, String key);

    int FletchingCorpusExportSchema(String name, long out, Pointer message);

    int FletchingCorpusExportArray(String name, long out, Pointer message);

    int FletchingCorpusFinish(Pointer message);
  }

  /** One case. */
  public static final class Case {
    public final String name;
    public final boolean isAccepted;
    private final int index;

    private Case(int index) {
      this.index = index;
      name = C.FletchingCorpusName(index);
      isAccepted = C.FletchingCorpusVerdict(index) == ACCEPT;
    }

    /** Why the library answers differently from the verdict; null where it does not. */
    public String exception(String library) {
      return C.FletchingCorpusException(index, library);
    }

    /** The rule that a refused case breaks; null if the case does not name one. */
    public String rule() {
      return C.FletchingCorpusText(index, "rule");
    }

    /** Whether only code that looks for the fault in the buffers refuses the case. */
    public boolean needsData() {
      return C.FletchingCorpusText(index, "level") != null;
    }

    /** The schema. */
    public Schema schema() {
      Raw raw = Raw.schema();
      Peer.call(name, message -> C.FletchingCorpusExportSchema(name, raw.address(), message));
      return Schema.wrap(raw.address());
    }

    /** The array, on the CPU. */
    public DeviceArray array() {
      Raw raw = Raw.deviceArray();
      Peer.call(name, message -> C.FletchingCorpusExportArray(name, raw.address(), message));
      return DeviceArray.wrap(raw.address());
    }

    /** Fails unless each export was released once. */
    public void finish() {
      Peer.call(name, C::FletchingCorpusFinish);
    }
  }

  /** The cases of a kind. */
  public static List<Case> cases(int kind) {
    List<Case> cases = new ArrayList<>();
    for (int i = 0; i < C.FletchingCorpusCount(); i++) {
      if (C.FletchingCorpusKind(i) == kind) {
        cases.add(new Case(i));
      }
    }
    assertFalse(cases.isEmpty());
    return cases;
  }
}
