// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Array;
import io.github.fletching.abi.engine.Failures;
import java.lang.ref.WeakReference;
import java.lang.reflect.Field;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/** Two copies of the library in one JVM, and JVMs that shut down. */
public class LoadersTest {
  /**
   * A static initializer that fails with a stack overflow fails permanently, and later exceptions
   * would reach C.
   */
  @Test
  void failuresHasNoStaticInitializer() {
    for (Field field : Failures.class.getDeclaredFields()) {
      assertTrue(field.getType().isPrimitive(), field.getName());
    }
  }

  @Test
  void structCrossesClassLoaders() throws Exception {
    try (LibraryCopy producer = new LibraryCopy();
        LibraryCopy consumer = new LibraryCopy()) {
      List<String> closed = new CopyOnWriteArrayList<>();
      Class<?> builders = producer.loadClass("io.github.fletching.ArrayBuilder");
      Class<?> arrays = consumer.loadClass("io.github.fletching.Array");
      assertNotSame(producer.loadClass("io.github.fletching.Array"), arrays);
      Object builder = builders.getConstructor(long.class).newInstance(3L);
      Object child = builders.getConstructor(long.class).newInstance(5L);
      builders.getMethod("child", builders).invoke(builder, child);
      AutoCloseable object = () -> closed.add("array");
      Object array = builders.getMethod("build", Object.class).invoke(builder, object);
      long there = (long) array.getClass().getMethod("address").invoke(array);

      Object received = arrays.getMethod("wrap", long.class).invoke(null, there);
      assertTrue((boolean) array.getClass().getMethod("isReleased").invoke(array));
      Object taken = arrays.getMethod("takeChild", int.class).invoke(received, 0);
      assertEquals(5L, arrays.getMethod("length").invoke(taken));
      ((AutoCloseable) received).close();
      assertEquals(List.of(), closed);
      ((AutoCloseable) taken).close();
      assertEquals(List.of("array"), closed);
    }
  }

  @Test
  void firstUseWithoutEngineThrowsIllegalStateException() {
    String output = Child.runMain(NoEngine.class, "-Dio.github.fletching.engine=none");
    String error =
        "java.lang.IllegalStateException: engine: none available: expected"
            + " io.github.fletching.engine=none, got ";
    assertEquals(4, output.split(error, -1).length - 1, output);
    assertTrue(output.contains(" not chosen; hint: add fletching-ffm (Java 22 or later)"), output);
    assertTrue(output.endsWith("0 leaks\n"), output);
  }

  /** As in an application server, where the application contains the engine. */
  @Test
  void contextClassLoaderEngineIsFound() throws Exception {
    URL[] core = {locationOf(Array.class), locationOf(Failures.class)};
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    try (URLClassLoader above = new URLClassLoader(core, ClassLoader.getPlatformClassLoader());
        URLClassLoader application = new URLClassLoader(LibraryCopy.urls(), above)) {
      thread.setContextClassLoader(application);
      Class<?> builders = above.loadClass("io.github.fletching.ArrayBuilder");
      Object builder = builders.getConstructor(long.class).newInstance(3L);
      Object array = builders.getMethod("build", Object.class).invoke(builder, (Object) null);
      assertEquals(3L, array.getClass().getMethod("length").invoke(array));
      ((AutoCloseable) array).close();
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  private static URL locationOf(Class<?> type) {
    return type.getProtectionDomain().getCodeSource().getLocation();
  }

  @Test
  void shutdownRejectsOpenOwnersAndEndsLibrary() throws Exception {
    useAndShutDown();
  }

  /** Returns the class loader of a library after use and shutdown. */
  public static WeakReference<ClassLoader> useAndShutDown() throws Exception {
    try (LibraryCopy copy = new LibraryCopy()) {
      Class<?> application = copy.loadClass(UnloadedApplication.class.getName());
      String used = "shutdown: called before: expected no further use";
      assertEquals(
          List.of(
              "shutdown: 1 owners are open, and C may release 1 objects, and 0 releases run: expected"
                  + " none",
              used,
              used),
          application.getMethod("run").invoke(null));
      return new WeakReference<>(copy);
    }
  }

  @Test
  void leakWarningsAreLimited() {
    String output = Child.runMain(UnclosedArrays.class, "-Darrays=150");
    String warning = "WARNING: array: collected and not closed";
    assertEquals(100, output.split(warning, -1).length - 1, output);
    assertTrue(output.contains(warning + "; later leaks are counted and not logged"), output);
  }

  @Test
  void firstCallerClassLoaderIsCollected() {
    assertTrue(Child.runMain(FirstCaller.class).endsWith("kept false\n"));
  }

  @Test
  void releaseFromCDuringShutdownLeaksAndIsCounted() throws Exception {
    String output = Child.runMain(ReleaseDuringShutdown.class, "-Xcheck:jni");
    assertTrue(
        output.contains("fletching: ArrowArray.release during shutdown: it leaks, as any later"),
        output);
    assertTrue(output.contains("late 2, closed in Java"), output);
    assertFalse(output.contains("not marked"), output);
  }

  @Test
  void leakStacksOptionShowsCreationSite() {
    String warning = "WARNING: array: collected and not closed";
    String output = Child.runMain(UnclosedArrays.class, "-Dio.github.fletching.leakStacks=true");
    assertTrue(output.contains(warning), output);
    assertTrue(output.contains("created here"), output);
    assertTrue(output.contains("UnclosedArrays.make("), output);
    output = Child.runMain(UnclosedArrays.class);
    assertTrue(output.contains(warning), output);
    assertFalse(output.contains("created here"), output);
  }
}
