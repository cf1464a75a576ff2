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
 * freed twice and what is written behind the end of an allocation. The system property
 * io.github.fletching.engine has to choose it.
 */
public final class Counting implements EngineProvider {
  /** The name. */
  public static final String NAME = "counting";

  private static final long GUARD = 0x5AFE_5AFE_5AFE_5AFEL; // behind each allocation
  private static final Map<Long, Long> LIVE = new ConcurrentHashMap<>();
  private static final List<String> PROBLEMS = new ArrayList<>();
  private static final AtomicInteger FAIL_AT = new AtomicInteger();
  private static volatile long refused = -1;
  private static volatile boolean refusesAll;
  private static volatile boolean refusesStubs;
  private static volatile Engine engine; // the other one

  /** How many allocations are live. */
  public static int live() {
    return LIVE.size();
  }

  /** How many bytes are live. */
  public static long bytes() {
    return LIVE.values().stream().mapToLong(size -> size).sum();
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

  /** Makes every allocation fail, or none. */
  public static void refuseAll(boolean now) {
    refusesAll = now;
  }

  /** Makes every new function for C fail, or none. */
  public static void refuseStubs(boolean now) {
    refusesStubs = now;
  }

  /** Lists the frees of memory that was not live, and the memory that is written behind its end. */
  public static synchronized List<String> problems() {
    LIVE.forEach(Counting::checkEnd);
    return List.copyOf(PROBLEMS);
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
    engine = Engines.open(others, null);
    return (Engine)
        Proxy.newProxyInstance(
            Engine.class.getClassLoader(),
            new Class<?>[] {Engine.class},
            (proxy, method, arguments) -> call(method, arguments));
  }

  private static Object call(Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("free")) {
      free((Long) arguments[0]);
      return null;
    }
    if (method.getName().equals("allocate")) {
      return allocate((Long) arguments[0]);
    }
    if (refusesStubs && method.getName().equals("stub")) {
      throw new OutOfMemoryError("no room");
    }
    try {
      return method.invoke(engine, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  private static synchronized long allocate(long size) {
    if (refusesAll || size == refused || FAIL_AT.getAndUpdate(n -> Math.max(n - 1, 0)) == 1) {
      return 0;
    }
    long address = engine.allocate(Math.max(size, size + Long.BYTES)); // without an overflow
    if (address == 0) {
      return 0;
    }
    engine.putLong(address + size, GUARD);
    LIVE.put(address, size);
    return address;
  }

  private static synchronized void free(long address) {
    Long size = LIVE.remove(address);
    if (size != null) {
      checkEnd(address, size);
      engine.free(address);
    } else if (address != 0) { // NULL is nothing to free
      PROBLEMS.add("free: " + address + ": not live");
    }
  }

  private static void checkEnd(long address, long size) {
    if (engine.getLong(address + size) != GUARD) {
      PROBLEMS.add(size + " bytes: written behind their end");
    }
  }
}
