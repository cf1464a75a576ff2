// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import io.github.fletching.testing.NativeLibraries;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;

/**
 * Runs a method of a suite in a JVM of its own: a library that is loaded already is preferred, and
 * what a stand-in counts is of the whole process.
 */
final class Alone {
  private static final String SUITE = "io.github.fletching.testing.suite";
  private static final String METHOD = "io.github.fletching.testing.method";

  private Alone() {}

  /** Returns what it has printed. */
  static String run(Object suite, String method) {
    // The loader finds the interposers first (tests/faults), which pass on what does not fail.
    String others = Objects.requireNonNullElse(System.getenv("LD_LIBRARY_PATH"), "");
    Path interposers = NativeLibraries.folder().resolve("interposers");
    try {
      return Child.run(
          Map.of("LD_LIBRARY_PATH", interposers + File.pathSeparator + others),
          Alone.class,
          "-XX:TieredStopAtLevel=1",
          "-D" + SUITE + "=" + suite.getClass().getName(),
          "-D" + METHOD + "=" + method);
    } catch (IOException | InterruptedException e) {
      throw new AssertionError(method, e);
    }
  }

  /** The suite and the method are system properties. */
  public static void main(String[] arguments) throws Throwable {
    Class<?> type = Class.forName(System.getProperty(SUITE));
    Constructor<?> constructor = type.getDeclaredConstructor();
    constructor.setAccessible(true);
    Method method = type.getSuperclass().getDeclaredMethod(System.getProperty(METHOD));
    method.setAccessible(true);
    method.invoke(constructor.newInstance());
  }
}
