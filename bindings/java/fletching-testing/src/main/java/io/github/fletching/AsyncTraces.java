// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.engine.Handles;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Replays the traces; returns a line for each that differs. */
public final class AsyncTraces {
  private AsyncTraces() {}

  /** Replays the traces of the consumer, of which there are {@code count}. */
  public static List<String> consumer(int count) {
    return play("consumer", count, AsyncConsumerReplay::play);
  }

  /** Replays the traces of the producer. */
  public static List<String> producer(int count) {
    return play("producer", count, AsyncProducerReplay::play);
  }

  private static List<String> play(String side, int count, Function<AsyncTrace, String> player) {
    int before = Handles.count();
    List<AsyncTrace> traces = AsyncTrace.read(side);
    List<String> problems =
        traces.stream().map(player).filter(Objects::nonNull).collect(Collectors.toList());
    if (traces.size() != count) {
      problems.add("expected " + count + " traces, got " + traces.size());
    }
    if (problems.isEmpty() && Handles.count() != before) {
      problems.add("handles are left: expected " + before + ", got " + Handles.count());
    }
    return problems;
  }
}
