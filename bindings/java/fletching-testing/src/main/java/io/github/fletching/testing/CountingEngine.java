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
 * The engine {@code counting}: counts the allocations of another engine, and detects double frees
 * and writes past the end of an allocation. Select it with the system property
 * io.github.fletching.engine.
 */
public final class CountingEngine implements EngineProvider {
  /** The engine's name. */
  public static final String NAME = "counting";

  private static final long GUARD = 0x5AFE_5AFE_5AFE_5AFEL; // after each allocation
  private static final Map<Long, Long> LIVE = new ConcurrentHashMap<>();
  private static final List<String> PROBLEMS = new ArrayList<>();
  private static final AtomicInteger FAIL_AT = new AtomicInteger();
  private static volatile long refused = -1;
  private static volatile boolean refusesAll;
  private static volatile boolean refusesStubs;
  private static volatile Engine engine; // the wrapped engine

  /** Returns the number of live allocations. */
  public static int live() {
    return LIVE.size();
  }

  /** Returns the number of live bytes. */
  public static long bytes() {
    return LIVE.values().stream().mapToLong(size -> size).sum();
  }

  /** Returns whether the property selects this engine. */
  public static boolean isChosen() {
    return NAME.equals(System.getProperty(Engines.PROPERTY));
  }

  /**
   * Makes the nth allocation from this call fail, or none for 0. Returns how many allocations the
   * previous setting was short of its failure: 0 if that allocation has failed.
   */
  public static int failAt(int nth) {
    return FAIL_AT.getAndSet(nth);
  }

  /** Makes allocations of exactly this size fail; -1 ends that. */
  public static void refuse(long size) {
    refused = size;
  }

  /** Makes all allocations fail, or none. */
  public static void refuseAll(boolean now) {
    refusesAll = now;
  }

  /** Makes all new C function stubs fail, or none. */
  public static void refuseStubs(boolean now) {
    refusesStubs = now;
  }

  /**
   * Returns the frees of memory that was not live, and the writes past the end of an allocation.
   */
  public static synchronized List<String> problems() {
    LIVE.forEach(CountingEngine::checkEnd);
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
    long address = engine.allocate(Math.max(size, size + Long.BYTES)); // without overflow
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
    } else if (address != 0) { // free(NULL) is a no-op
      PROBLEMS.add("free: " + address + ": not live");
    }
  }

  private static void checkEnd(long address, long size) {
    if (engine.getLong(address + size) != GUARD) {
      PROBLEMS.add(size + " bytes: written behind their end");
    }
  }
}
