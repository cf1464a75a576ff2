// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import io.github.fletching.abi.engine.Engines;
import io.github.fletching.testing.CountingEngine;
import java.io.File;
import java.lang.reflect.Method;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.platform.commons.support.ReflectionSupport;

/**
 * Class loader with an unused copy of Fletching and its tests; all other classes come from the
 * parent.
 */
public final class LibraryCopy extends URLClassLoader {
  private static final String REFUSED = "io.github.fletching.testing.refused";

  LibraryCopy() {
    super(urls(), LibraryCopy.class.getClassLoader());
  }

  static URL[] urls() {
    return Arrays.stream(Child.classPath().split(File.pathSeparator))
        .map(
            entry -> {
              try {
                return Path.of(entry).toUri().toURL();
              } catch (MalformedURLException e) {
                throw new IllegalArgumentException(e);
              }
            })
        .toArray(URL[]::new);
  }

  @Override
  protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
    if (!name.startsWith("io.github.fletching.")) {
      return super.loadClass(name, resolve);
    }
    synchronized (getClassLoadingLock(name)) {
      Class<?> known = findLoadedClass(name);
      if (known == null && name.equals(System.getProperty(REFUSED))) {
        throw new OutOfMemoryError("no room");
      }
      return known != null ? known : findClass(name);
    }
  }

  /**
   * Runs the body, for a suite on a copy, while loading the named class throws OutOfMemoryError.
   */
  public static void without(String name, Runnable body) {
    System.setProperty(REFUSED, name);
    try {
      body.run();
    } catch (OutOfMemoryError e) { // JUnit would abort the whole test run
      throw new AssertionError(e);
    } finally {
      System.clearProperty(REFUSED);
    }
  }

  /**
   * Runs a suite's method on a copy with the engine {@link CountingEngine}: as in a new process, no
   * library is loaded and no runtime is initialized.
   */
  static void run(Class<?> suite, String method) {
    Thread thread = Thread.currentThread();
    ClassLoader loader = thread.getContextClassLoader();
    String engine = System.getProperty(Engines.PROPERTY);
    LibraryCopy copy = new LibraryCopy(); // its daemon threads may outlive the call
    thread.setContextClassLoader(copy);
    System.setProperty(Engines.PROPERTY, CountingEngine.NAME);
    try {
      Class<?> type = copy.loadClass(suite.getName());
      Method found = ReflectionSupport.findMethod(type, method).orElseThrow();
      ReflectionSupport.invokeMethod(found, ReflectionSupport.newInstance(type));
    } catch (ClassNotFoundException e) {
      throw new IllegalArgumentException(e);
    } finally {
      thread.setContextClassLoader(loader);
      if (engine == null) {
        System.clearProperty(Engines.PROPERTY);
      } else {
        System.setProperty(Engines.PROPERTY, engine);
      }
    }
  }
}
