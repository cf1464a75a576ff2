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
      Raw raw = Raw.schema();
      c.exportSchema(raw.address());
      try (Schema schema = Schema.wrap(raw.address())) {
        c.compareSchema(schema.address());
      }
      c.finish();
    }
  }

  @Test
  void arraysAreMovedUnchanged() {
    for (Case c : Corpus.cases(Corpus.ARRAY)) {
      Raw raw = Raw.deviceArray();
      c.exportArray(raw.address());
      try (DeviceArray array = DeviceArray.wrap(raw.address())) {
        c.compareArray(array.address());
      }
      c.finish();
    }
  }

  @Test
  void streamsGiveTheirBatchesAndTheirError() {
    for (Case c : Corpus.cases(Corpus.STREAM)) {
      Raw raw = Raw.stream();
      c.exportStream(raw.address());
      int batches = 0;
      int error = 0;
      try (ArrayStream stream = ArrayStream.wrap(raw.address())) {
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
