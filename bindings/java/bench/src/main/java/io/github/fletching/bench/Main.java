// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.bench;

import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;
import org.openjdk.jmh.util.Statistics;

/** One fork of a case: WHO CASE LENGTH. It prints what benchmarks/rows.py asks for. */
public final class Main {
  private static final Map<String, String> CLASSES =
      Map.of("ffm", "Fletching", "jna", "Fletching", "pair", "Pair", "arrow", "ArrowJava");

  private Main() {}

  public static void main(String[] arguments) throws RunnerException {
    if (arguments.length < 2 || !CLASSES.containsKey(arguments[0])) {
      System.err.println("usage: fletching_bench_java ffm|jna|pair|arrow take|give|handoff LENGTH");
      System.exit(2);
    }
    String who = arguments[0];
    OptionsBuilder options = new OptionsBuilder();
    options
        .include("\\." + CLASSES.get(who) + "\\." + arguments[1] + "$")
        .mode(Mode.AverageTime)
        .timeUnit(TimeUnit.NANOSECONDS)
        .forks(1)
        .warmupIterations(5)
        .warmupTime(TimeValue.milliseconds(300))
        .measurementIterations(5)
        .measurementTime(TimeValue.milliseconds(300))
        .addProfiler(CpuTime.class)
        .addProfiler(GCProfiler.class)
        .verbosity(VerboseMode.SILENT)
        .shouldFailOnError(true);
    if (arguments.length > 2) {
      options.param("length", arguments[2]);
    }
    if (!who.equals("pair") && !who.equals("arrow")) {
      options.jvmArgsAppend("-Dio.github.fletching.engine=" + who);
    }
    RunResult result = new Runner(options.build()).runSingle();
    System.out.printf(
        Locale.ROOT,
        "{\"ns\": %.2f, \"bytes\": %.0f}%n",
        secondary(result, CpuTime.LABEL).getPercentile(50),
        secondary(result, "gc.alloc.rate.norm").getMin());
  }

  private static Statistics secondary(RunResult result, String label) {
    return result.getSecondaryResults().entrySet().stream()
        .filter(entry -> entry.getKey().endsWith(label))
        .findFirst()
        .orElseThrow()
        .getValue()
        .getStatistics();
  }
}
