// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.bench;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Collection;
import java.util.List;
import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.infra.IterationParams;
import org.openjdk.jmh.profile.InternalProfiler;
import org.openjdk.jmh.results.AggregationPolicy;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.ScalarResult;

/**
 * CPU nanoseconds per call, including the garbage collector's. Wall time would depend on the
 * machine's other load.
 */
public final class CpuTime implements InternalProfiler {
  static final String LABEL = "cpu";

  private final OperatingSystemMXBean system =
      ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
  private long start;

  @Override
  public String getDescription() {
    return "CPU time of the process for one call";
  }

  @Override
  public void beforeIteration(BenchmarkParams benchmark, IterationParams iteration) {
    start = system.getProcessCpuTime();
  }

  @Override
  public Collection<? extends Result> afterIteration(
      BenchmarkParams benchmark, IterationParams iteration, IterationResult result) {
    double elapsed = system.getProcessCpuTime() - start;
    double each = elapsed / result.getMetadata().getAllOps();
    return List.of(new ScalarResult(LABEL, each, "ns/op", AggregationPolicy.AVG));
  }
}
