// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.github.fletching.testing.NativeLibraries;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.platform.commons.support.ReflectionSupport;

/** A program in a separate JVM. */
public final class Child {
  private static final int SECONDS = 120;

  private Child() {}

  static String classPath() {
    return System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
  }

  /**
   * Runs a main class and returns its output. A program that does not end is killed, which fails
   * the test.
   */
  public static String runMain(Class<?> main, String... options) {
    return run(main, List.of(options), List.of(), Map.of());
  }

  /**
   * Runs a suite's method in a separate process, because a library stays loaded and a stand-in
   * keeps process-wide counts. The loader finds the interposers (tests/faults) first; they forward
   * every call that is not set to fail.
   */
  static String run(Object suite, String method, String... options) {
    return run(suite, method, Map.of(), options);
  }

  static String run(Object suite, String method, Map<String, String> variables, String... options) {
    if ("here".equals(System.getenv("FLETCHING_TEST_CHILDREN"))) { // mutants exist only in this JVM
      call(suite.getClass(), method);
      return "";
    }
    String libraries = Objects.requireNonNullElse(System.getenv("LD_LIBRARY_PATH"), "");
    Path interposers = NativeLibraries.folder().resolve("interposers");
    List<String> all = new ArrayList<>(List.of(options));
    all.add("-XX:TieredStopAtLevel=1");
    Map<String, String> set = new HashMap<>(variables);
    set.put("LD_LIBRARY_PATH", interposers + File.pathSeparator + libraries);
    return run(Child.class, all, List.of(suite.getClass().getName(), method), set);
  }

  private static String run(
      Class<?> main, List<String> options, List<String> arguments, Map<String, String> variables) {
    assumeFalse("none".equals(System.getenv("FLETCHING_TEST_CHILDREN")), "its mutant is not there");
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(options);
    command.addAll(List.of("-cp", classPath(), main.getName()));
    command.addAll(arguments);
    try {
      Path output = Files.createTempFile("fletching", ".log");
      ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
      builder.environment().putAll(variables);
      Process process = builder.redirectOutput(output.toFile()).start();
      boolean ended;
      try {
        ended = process.waitFor(SECONDS, TimeUnit.SECONDS);
      } finally {
        process.destroyForcibly(); // also if the test has timed out
      }
      process.waitFor();
      String text = Files.readString(output);
      Files.delete(output);
      assertTrue(ended, main + ": did not end in " + SECONDS + " s: " + text);
      assertEquals(0, process.exitValue(), text);
      return text;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new AssertionError(main + " " + arguments, e);
    }
  }

  /** Arguments: the class of a suite and the name of one of its methods. */
  public static void main(String[] arguments) throws Throwable {
    call(Class.forName(arguments[0]), arguments[1]);
  }

  private static void call(Class<?> type, String name) {
    Method method = ReflectionSupport.findMethod(type, name).orElseThrow();
    ReflectionSupport.invokeMethod(method, ReflectionSupport.newInstance(type));
  }
}
