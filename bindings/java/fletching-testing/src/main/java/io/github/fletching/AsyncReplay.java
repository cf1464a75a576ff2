// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.IntSupplier;

/** The cursor over the steps of a trace. The first difference ends it. */
abstract class AsyncReplay {
  final AsyncTrace trace;
  private final Map<String, Integer> counts = new HashMap<>();
  private int at;
  private List<String> expected = new ArrayList<>();
  private String failed;

  AsyncReplay(AsyncTrace trace) {
    this.trace = trace;
  }

  synchronized void fail(String text) {
    if (failed == null) {
      int step = Math.max(at - 1, 0);
      failed = "step " + step + ", " + trace.steps.get(step).event + ": " + text;
    }
  }

  synchronized boolean hasFailed() {
    return failed != null;
  }

  /** Null after the last step. */
  synchronized AsyncTrace.Step next() {
    return failed != null || at == trace.steps.size() ? null : trace.steps.get(at);
  }

  synchronized boolean isLast(AsyncTrace.Step step) {
    return at > 0 && trace.steps.get(at - 1) == step;
  }

  synchronized boolean expectsMore() {
    return !expected.isEmpty();
  }

  /** Whether another call of the name is expected in this step. */
  synchronized boolean expectsAnother(String name) {
    return expected.stream().anyMatch(call -> call.equals(name) || call.startsWith(name + " "));
  }

  /** A call of the side under test, or a notification. */
  synchronized void happened(String what) {
    if (expected.isEmpty() || !expected.get(0).equals(what)) {
      fail(what + ": expected " + expected);
      return;
    }
    expected.remove(0);
    String name = what.equals("on_next_task") ? "end" : what.split(" ")[0];
    counts.merge(name, 1, Integer::sum);
  }

  /** One step, from its event to its result. */
  void perform(AsyncTrace.Step step, IntSupplier work) {
    List<String> outer;
    synchronized (this) {
      at++;
      outer = expected;
      expected = step.expected();
    }
    int result = work.getAsInt();
    synchronized (this) {
      if (!expected.isEmpty()) {
        fail("expected " + expected);
      }
      if (step.result != null && step.result != result) {
        fail("expected to return " + step.result + ", got " + result);
      }
      expected = outer;
    }
  }

  /** Null, or what differs. */
  synchronized String compare(String schema, List<String> tasks, List<Integer> codes) {
    trace.end.calls.forEach(
        (name, count) -> {
          if (!counts.getOrDefault(name, 0).equals(count)) {
            fail("finally: expected " + count + " calls of " + name + ", got " + counts);
          }
        });
    List<Integer> code = trace.end.code == null ? List.of() : List.of(trace.end.code);
    AsyncTrace.End end = trace.end;
    if (!Objects.equals(schema, end.schema) || !tasks.equals(end.tasks) || !codes.equals(code)) {
      String found = schema + " " + tasks + " " + codes;
      fail("finally: expected " + end.schema + " " + end.tasks + " " + code + ", got " + found);
    }
    return failed == null ? null : trace.name + ": " + failed;
  }

  /** A schema or a batch, and what happened to it. */
  static class Thing {
    final int number;
    private final List<String> fates = new ArrayList<>();

    Thing(int number) {
      this.number = number;
    }

    synchronized void meets(String fate) {
      fates.add(fate);
    }

    synchronized boolean hasMetNothing() {
      return fates.isEmpty();
    }

    /** Renames what has happened to it; false when it is not just that. */
    synchronized boolean isNow(String fate, String name) {
      boolean only = fates.equals(List.of(fate));
      return only && fates.set(0, name) != null;
    }

    /** What happened to it: several events differ from every expected one. */
    synchronized String fate(String freed) {
      return fates.equals(List.of("freed")) ? freed : String.join(", ", fates);
    }
  }
}
