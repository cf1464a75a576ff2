// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.fletching.DeviceArrayStream;
import io.github.fletching.testing.suite.Conformance.Passage;
import io.github.fletching.testing.suite.Conformance.Results;
import io.github.fletching.testing.suite.Conformance.Subject;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The conformance suite on the library: broken structs, the corpus, the catalog and events. */
@Timeout(300)
@ExtendWith(LeakCheck.class)
class ConformanceTest {
  // Each group needs a process in which the producer finds the driver stand-ins.
  private static final Set<String> OF_DEVICES = Set.of("events", "devices");

  static Stream<String> groups() {
    return Conformance.groups().filter(group -> !OF_DEVICES.contains(group));
  }

  private static void play(Subject subject, String group) {
    Results results = Conformance.run(subject, group, null);
    assertEquals("", String.join("\n", results.wrong));
    ConformanceSubject.finish();
    assertEquals(Set.of("right"), results.counts.keySet(), group);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("groups")
  void viewsConform(String group) {
    play(ConformanceSubject.views(), group);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("groups")
  void buildersConform(String group) {
    play(ConformanceSubject.builders(), group);
  }

  @Test
  void eventsConform() {
    Child.run(this, "playEvents");
  }

  void playEvents() {
    assertEquals(Set.of("right"), onStandins("events"));
  }

  @Test
  void devicesConform() {
    Child.run(this, "playDevices");
  }

  void playDevices() {
    assertEquals(Set.of("right"), onStandins("devices"));
  }

  /** Returns the verdicts of both subjects, without the devices that the machine lacks. */
  private static Set<String> onStandins(String group) {
    Gpu.cuda("standin");
    Gpu.hip("standin");
    Set<String> verdicts = new HashSet<>();
    for (Subject subject : List.of(ConformanceSubject.views(), ConformanceSubject.builders())) {
      Results results = Conformance.run(subject, group, null);
      assertEquals("", String.join("\n", results.wrong));
      ConformanceSubject.finish();
      verdicts.addAll(results.counts.keySet());
    }
    verdicts.remove("absent");
    return verdicts;
  }

  @Test
  void droppedBatchIsReported() {
    Subject subject = ConformanceSubject.views();
    Passage good = subject.deviceStream;
    subject.deviceStream =
        (context, in, out, message) -> {
          int code = good.call(context, in, out, message);
          DeviceArrayStream stream = DeviceArrayStream.wrap(out);
          stream.next().close();
          stream.moveTo(out);
          return code;
        };
    Results results = Conformance.run(subject, "device-streams", "stream.good");
    assertEquals(List.of("device-streams stream.good: expected 3 batches, got 2"), results.wrong);
  }
}
