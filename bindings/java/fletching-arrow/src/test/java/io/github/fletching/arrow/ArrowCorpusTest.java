// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.fletching.FletchingException;
import io.github.fletching.testing.suite.Corpus;
import io.github.fletching.testing.suite.Corpus.Case;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.arrow.c.CDataDictionaryProvider;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.junit.jupiter.api.Test;

/** The corpus through the adapter, which rejects invalid cases before arrow-java reads them. */
class ArrowCorpusTest {
  private interface Import {
    void run(BufferAllocator allocator, CDataDictionaryProvider dictionaries);
  }

  private static String errorOf(Import action) {
    try (BufferAllocator allocator = new RootAllocator();
        CDataDictionaryProvider dictionaries = new CDataDictionaryProvider()) {
      action.run(allocator, dictionaries);
      return null;
    } catch (FletchingException e) {
      return e.getMessage();
    }
  }

  /** Returns whether the error names a feature that the oldest supported arrow-java lacks. */
  private static boolean isMissingInOldest(String error) {
    return System.getProperty("java.class.path").contains("arrow-vector-16.1.0")
        && error != null
        && (error.contains("not supported by this version of arrow-java")
            || error.matches(".*: Format \\S+ is not supported.*"));
  }

  private static void eachGetsItsVerdict(int kind, Function<Case, Import> play) {
    List<String> wrong = new ArrayList<>();
    for (Case c : Corpus.cases(kind)) {
      if (c.needsData()) {
        continue; // arrow-java does not check the data
      }
      String error = errorOf(play.apply(c));
      boolean isAccepted = c.isAccepted && c.exception("arrow-java") == null;
      if ((error == null) != isAccepted && !isMissingInOldest(error)) {
        wrong.add(c.name + ": " + error);
      }
      c.finish();
    }
    assertEquals(List.of(), wrong);
  }

  @Test
  void importFieldMatchesCorpusVerdict() {
    eachGetsItsVerdict(
        Corpus.SCHEMA,
        c ->
            (allocator, dictionaries) ->
                ArrowData.importField(allocator, c.schema(), dictionaries));
  }

  @Test
  void importVectorMatchesCorpusVerdict() {
    eachGetsItsVerdict(
        Corpus.ARRAY,
        c ->
            (allocator, dictionaries) ->
                ArrowData.importVector(allocator, c.array(), c.schema(), dictionaries).close());
  }
}
