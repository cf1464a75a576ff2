// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing;

import com.sun.jna.Callback;
import com.sun.jna.CallbackReference;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.github.fletching.abi.engine.Engine;
import io.github.fletching.abi.engine.EngineProvider;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The engine {@code fake-library}: the counting engine, with libraries that are loaded at run time,
 * or some of their functions, missing or mocked in Java. Select it with the system property
 * io.github.fletching.engine.
 */
public final class FakeLibraryEngine implements EngineProvider {
  /** The engine's name. */
  public static final String NAME = "fake-library";

  private static final int RTLD_NOLOAD = 4;
  private static final long LIBRARY = 0x11b0; // the handle of every mocked library
  private static final Memory NOWHERE = new Memory(64);
  private static final Function SUCCESS = (a, b, c, d, e) -> 0;
  private static final Function NONE = (a, b, c, d, e) -> 0;

  private static final Map<String, Function> FUNCTIONS = new ConcurrentHashMap<>();
  private static final List<String> OPENED = new ArrayList<>();
  private static volatile Map<String, Boolean> libraries; // null to use the system's libraries

  static {
    NOWHERE.setString(0, "/nowhere/library.so");
  }

  private final Map<Long, String> loader = new ConcurrentHashMap<>(); // function names by address

  /** A C function. Arguments that the caller does not pass have arbitrary values. */
  public interface Function extends Callback {
    /** Returns the result, truncated to the width that C expects. */
    long call(long first, long second, long third, long fourth, long fifth);
  }

  /**
   * Restricts loading to these libraries, by name; the value says whether the library is already
   * loaded. Their functions return 0 unless replaced.
   */
  public static void libraries(Map<String, Boolean> names) {
    libraries = Map.copyOf(names);
  }

  /** Replaces a function in every library that is loaded later. */
  public static void replace(String name, Function body) {
    FUNCTIONS.put(name, body);
  }

  /** Removes a function from every library that is loaded later. */
  public static void remove(String name) {
    FUNCTIONS.put(name, NONE);
  }

  /** Returns the dlopen calls so far: the name and the flags. */
  public static List<String> opened() {
    return List.copyOf(OPENED);
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public int rank() {
    return -2;
  }

  @Override
  public Engine open() {
    Engine engine = new CountingEngine().open();
    return (Engine)
        Proxy.newProxyInstance(
            Engine.class.getClassLoader(),
            new Class<?>[] {Engine.class},
            (proxy, method, arguments) -> call(engine, method, arguments));
  }

  private Object call(Engine engine, Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("call")) {
      String function = loader.getOrDefault((Long) arguments[1], "");
      Long result = intercept(function, (long[]) arguments[2]);
      if (result != null) {
        return result;
      }
    }
    try {
      Object result = method.invoke(engine, arguments);
      if (method.getName().equals("symbol")) {
        loader.put((Long) result, (String) arguments[1]);
      }
      return result;
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  /** Returns null to use the system's result. */
  private static Long intercept(String function, long[] arguments) {
    if (function.equals("dlopen")) {
      return open(arguments);
    }
    return function.equals("dlsym")
        ? find(arguments[0], new Pointer(arguments[1]).getString(0))
        : null;
  }

  private static Long open(long[] arguments) {
    String name = new Pointer(arguments[0]).getString(0);
    int flags = (int) arguments[1];
    OPENED.add(name + " " + flags);
    if (libraries == null) {
      return null;
    }
    Boolean isLoaded = libraries.get(name);
    if (isLoaded != null && (isLoaded || (flags & RTLD_NOLOAD) == 0)) {
      return LIBRARY;
    }
    arguments[0] = Pointer.nativeValue(NOWHERE); // so that dlerror gives the system's reason
    return null;
  }

  private static Long find(long library, String name) {
    Function function = FUNCTIONS.getOrDefault(name, library == LIBRARY ? SUCCESS : null);
    if (function == NONE) {
      return 0L;
    }
    return function == null
        ? null
        : Pointer.nativeValue(CallbackReference.getFunctionPointer(function));
  }
}
