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
import org.openjdk.jmh.runner.options.VerboseMode;
import org.openjdk.jmh.util.Statistics;

/**
 * One fork of a case: WHO CASE ROUNDS [LENGTH]. Prints the values that tests/benchmarks/rows.py reads.
 * Runs a fixed number of rounds, because in a fixed time a busy machine may compile too little.
 */
public final class Main {
  private static final Map<String, String> CLASSES =
      Map.of("ffm", "Fletching", "jna", "Fletching", "pair", "Pair", "arrow", "ArrowJava");

  private Main() {}

  public static void main(String[] arguments) throws RunnerException {
    if (arguments.length < 3 || !CLASSES.containsKey(arguments[0])) {
      System.err.println(
          "usage: fletching_bench_java ffm|jna|pair|arrow take|give|handoff|tensor|async ROUNDS [LENGTH]");
      System.exit(2);
    }
    String who = arguments[0];
    int rounds = Integer.parseInt(arguments[2]);
    OptionsBuilder options = new OptionsBuilder();
    options
        .include("\\." + CLASSES.get(who) + "\\." + arguments[1] + "$")
        .mode(Mode.SingleShotTime)
        .timeUnit(TimeUnit.NANOSECONDS)
        .forks(1)
        .warmupIterations(4)
        .warmupBatchSize(rounds)
        .measurementIterations(5)
        .measurementBatchSize(rounds)
        .addProfiler(CpuTime.class)
        .addProfiler(GCProfiler.class)
        .verbosity(VerboseMode.SILENT)
        .shouldFailOnError(true);
    if (arguments.length > 3) {
      options.param("length", arguments[3]);
    }
    if (!who.equals("pair") && !who.equals("arrow")) {
      options.jvmArgsAppend("-Dio.github.fletching.engine=" + who);
    }
    RunResult result = new Runner(options.build()).runSingle();
    System.out.printf(
        Locale.ROOT,
        "{\"ns\": %.2f, \"bytes\": %.0f}%n",
        secondary(result, CpuTime.LABEL).getMean() / rounds,
        secondary(result, "gc.alloc.rate.norm").getMin() / rounds);
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
