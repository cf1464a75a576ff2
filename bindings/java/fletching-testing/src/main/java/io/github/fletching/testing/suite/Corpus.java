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

/** The cases of the corpus; tests/corpus/corpus.h declares every function. */
public final class Corpus {
  public static final int SCHEMA = 1;
  public static final int ARRAY = 2;

  private static final int ACCEPT = 1;

  private static final Functions C = NativeLibraries.load("corpus", Functions.class);

  private Corpus() {}

  // These are C names, which JNA looks up. Addresses are longs.
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

    /** Returns why the library's answer differs from the verdict, or null if it does not. */
    public String exception(String library) {
      return C.FletchingCorpusException(index, library);
    }

    /** Returns the rule that a rejected case breaks, or null if the case names no rule. */
    public String rule() {
      return C.FletchingCorpusText(index, "rule");
    }

    /** Returns whether detecting the error requires reading the buffers. */
    public boolean needsData() {
      return C.FletchingCorpusText(index, "level") != null;
    }

    /** Returns the schema. */
    public Schema schema() {
      Raw raw = Raw.schema();
      Peer.call(name, message -> C.FletchingCorpusExportSchema(name, raw.address(), message));
      return raw.give(Schema::wrap);
    }

    /** Returns the array, in CPU memory. */
    public DeviceArray array() {
      Raw raw = Raw.deviceArray();
      Peer.call(name, message -> C.FletchingCorpusExportArray(name, raw.address(), message));
      return raw.give(DeviceArray::wrap);
    }

    /** Fails unless each export was released exactly once. */
    public void finish() {
      Peer.call(name, C::FletchingCorpusFinish);
    }
  }

  /** Returns the cases of one kind. */
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
