// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing;

import io.github.fletching.abi.engine.Engine;
import io.github.fletching.abi.engine.EngineProvider;
import io.github.fletching.abi.engine.Engines;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The engine {@code counting}: it counts the allocations of another engine, and notices what is
 * freed twice. The system property io.github.fletching.engine has to choose it.
 */
public final class Counting implements EngineProvider {
  /** The name. */
  public static final String NAME = "counting";

  private static final Map<Long, Long> LIVE = new ConcurrentHashMap<>();
  private static final List<String> PROBLEMS = new ArrayList<>();
  private static final AtomicInteger FAIL_AT = new AtomicInteger();
  private static volatile long refused = -1;

  /** How many allocations are live. */
  public static int live() {
    return LIVE.size();
  }

  /** Whether the property has chosen it for this JVM. */
  public static boolean isChosen() {
    return NAME.equals(System.getProperty(Engines.PROPERTY));
  }

  /**
   * Lets the nth allocation from now on fail, or none for 0. Returns how many were missing until
   * the last one that was to fail: 0 when it has failed.
   */
  public static int failAt(int nth) {
    return FAIL_AT.getAndSet(nth);
  }

  /** From now on there is no memory of exactly this size; -1 ends that. */
  public static void refuse(long size) {
    refused = size;
  }

  /** Lists the frees of memory that was not live. */
  public static List<String> problems() {
    synchronized (PROBLEMS) {
      return List.copyOf(PROBLEMS);
    }
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public int rank() {
    return -1;
  }

  @Override
  public Engine open() {
    List<EngineProvider> others = new ArrayList<>();
    ServiceLoader.load(EngineProvider.class).forEach(others::add);
    others.removeIf(each -> each.name().equals(NAME));
    Engine engine = Engines.open(others, null);
    return (Engine)
        Proxy.newProxyInstance(
            Engine.class.getClassLoader(),
            new Class<?>[] {Engine.class},
            (proxy, method, arguments) -> call(engine, method, arguments));
  }

  private static Object call(Engine engine, Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("free") && LIVE.remove((Long) arguments[0]) == null) {
      if ((Long) arguments[0] != 0) { // NULL is nothing to free
        synchronized (PROBLEMS) {
          PROBLEMS.add("free: " + arguments[0] + ": not live");
        }
      }
      return null;
    }
    if (method.getName().equals("allocate")
        && ((Long) arguments[0] == refused || FAIL_AT.getAndUpdate(n -> Math.max(n - 1, 0)) == 1)) {
      return 0L;
    }
    try {
      Object result = method.invoke(engine, arguments);
      if (method.getName().equals("allocate") && (Long) result != 0) {
        LIVE.put((Long) result, (Long) arguments[0]);
      }
      return result;
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
