// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.fletching.ArrayStream;
import io.github.fletching.DeviceArray;
import io.github.fletching.FletchingException;
import io.github.fletching.Schema;
import io.github.fletching.testing.suite.Corpus.Case;
import org.junit.jupiter.api.Test;

/** The corpus with Java's owners: every struct arrives unchanged, and is released once. */
public abstract class CorpusSuite {
  @Test
  void schemasAreMovedUnchanged() {
    for (Case c : Corpus.cases(Corpus.SCHEMA)) {
      try (Schema schema = c.schema()) {
        c.compareSchema(schema);
      }
      c.finish();
    }
  }

  @Test
  void arraysAreMovedUnchanged() {
    for (Case c : Corpus.cases(Corpus.ARRAY)) {
      try (DeviceArray array = c.array()) {
        c.compareArray(array);
      }
      c.finish();
    }
  }

  @Test
  void streamsGiveTheirBatchesAndTheirError() {
    for (Case c : Corpus.cases(Corpus.STREAM)) {
      int batches = 0;
      int error = 0;
      try (ArrayStream stream = c.stream()) {
        while (stream.hasNext()) {
          stream.next().close();
          batches++;
        }
      } catch (FletchingException e) {
        error = e.errno();
      }
      assertEquals(c.batches, batches, c.name);
      assertEquals(c.error, error, c.name);
      c.finish();
    }
  }
}
