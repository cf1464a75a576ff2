// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A program in a JVM of its own. */
final class Child {
  private static final int SECONDS = 120;

  private Child() {}

  static String classPath() {
    return System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
  }

  /** Runs a main class; returns what it prints. A program that does not end is killed and fails. */
  static String run(Class<?> main, String... options) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of(options));
    command.addAll(List.of("-cp", classPath(), main.getName()));
    Path output = Files.createTempFile("fletching", ".log");
    try {
      Process process =
          new ProcessBuilder(command)
              .redirectErrorStream(true)
              .redirectOutput(output.toFile())
              .start();
      boolean ended = process.waitFor(SECONDS, TimeUnit.SECONDS);
      process.destroyForcibly().waitFor();
      String text = Files.readString(output);
      assertTrue(ended, main + ": did not end in " + SECONDS + " s: " + text);
      assertEquals(0, process.exitValue(), text);
      return text;
    } finally {
      Files.delete(output);
    }
  }
}
