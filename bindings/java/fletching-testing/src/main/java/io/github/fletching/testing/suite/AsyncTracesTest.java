// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.fletching.AsyncTraces;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Every trace of tests/traces/README.md, against both sides. */
@Timeout(300)
class AsyncTracesTest {
  @Test
  void consumer() {
    assertEquals(List.of(), AsyncTraces.consumer(195));
  }

  @Test
  void producer() {
    assertEquals(List.of(), AsyncTraces.producer(246));
  }
}
