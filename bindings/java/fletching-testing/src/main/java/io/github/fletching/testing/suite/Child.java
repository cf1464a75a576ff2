// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.testing.NativeLibraries;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import java.util.concurrent.TimeUnit;

/**
 * Runs a method of a suite in a JVM of its own: a library that is loaded already is preferred, and
 * what a stand-in counts is of the whole process.
 */
public final class Child {
  private Child() {}

  /**
   * Returns what it has printed. The loader finds the interposers first (tests/faults), which pass
   * on what does not fail.
   */
  static String run(Object suite, String method) {
    Path java = Path.of(System.getProperty("java.home"), "bin", "java");
    String path = System.getProperty("java.class.path");
    ProcessBuilder builder =
        new ProcessBuilder(
            java.toString(),
            "-XX:TieredStopAtLevel=1",
            "-cp",
            System.getProperty("surefire.test.class.path", path),
            Child.class.getName(),
            suite.getClass().getName(),
            method);
    String libraries = Objects.requireNonNullElse(System.getenv("LD_LIBRARY_PATH"), "");
    builder
        .environment()
        .put(
            "LD_LIBRARY_PATH",
            NativeLibraries.folder().resolve("interposers") + File.pathSeparator + libraries);
    try {
      File output = File.createTempFile("fletching", ".txt");
      Process process = builder.redirectErrorStream(true).redirectOutput(output).start();
      boolean ended = process.waitFor(60, TimeUnit.SECONDS);
      process.destroyForcibly();
      String text = Files.readString(output.toPath());
      assertTrue(ended && output.delete(), text);
      assertEquals(0, process.exitValue(), text);
      return text;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new AssertionError(method, e);
    }
  }

  /** The class and the method. */
  public static void main(String[] arguments) throws Throwable {
    Class<?> type = Class.forName(arguments[0]);
    Constructor<?> constructor = type.getDeclaredConstructor();
    constructor.setAccessible(true);
    Method method = type.getSuperclass().getDeclaredMethod(arguments[1]);
    method.setAccessible(true);
    method.invoke(constructor.newInstance());
  }
}
