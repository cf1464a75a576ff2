// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi.engine;

import io.github.fletching.abi.LayoutClass;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.ServiceConfigurationError;

/** Selects and opens the engine. */
public final class Engines {
  /** The system property that selects the engine: {@code ffm} or {@code jna}. */
  public static final String PROPERTY = "io.github.fletching.engine";

  private Engines() {}

  /**
   * Opens the engine named {@code wanted}, or the first one that opens if the name is null.
   *
   * @param providers the available engines; an error of this iterable ends the search
   * @param wanted the name of an engine; null for any
   * @return the engine
   * @throws IllegalStateException if no engine opens; the message lists each engine's failure, and
   *     the cause is the first of them
   */
  public static Engine open(Iterable<EngineProvider> providers, String wanted) {
    List<EngineProvider> found = new ArrayList<>();
    List<String> refusals = new ArrayList<>();
    List<Throwable> causes = new ArrayList<>();
    Error broken = null;
    try {
      providers.forEach(found::add);
    } catch (ServiceConfigurationError | LinkageError e) { // providers after it are not found
      broken = e;
    }
    found.sort(Comparator.comparingInt(EngineProvider::rank).reversed());
    for (EngineProvider provider : found) {
      if (wanted != null && !wanted.equals(provider.name())) {
        refusals.add(provider.name() + " not chosen");
        continue;
      }
      try {
        return provider.open();
      } catch (UnsupportedOperationException | IllegalCallerException | LinkageError e) {
        causes.add(e);
        Throwable root = root(e);
        String message = root.getMessage() == null ? root.toString() : root.getMessage();
        refusals.add(provider.name() + " failed: " + message);
      }
    }
    if (broken != null) {
      causes.add(broken);
      refusals.add(broken.getMessage());
    }
    IllegalStateException failure =
        new IllegalStateException(
            "engine: none available: expected "
                + (wanted == null ? "ffm or jna" : PROPERTY + "=" + wanted)
                + ", got "
                + (refusals.isEmpty() ? "no artifact" : String.join(", ", refusals))
                + "; hint: "
                + hint(causes),
            causes.isEmpty() ? null : causes.get(0));
    causes.stream().skip(1).forEach(failure::addSuppressed);
    throw failure;
  }

  private static String hint(List<Throwable> causes) {
    return causes.stream().anyMatch(cause -> root(cause) instanceof IllegalCallerException)
        ? "start java with --enable-native-access=ALL-UNNAMED, or with the name of the module that"
            + " calls C"
        : "add fletching-ffm (Java 22 or later) or fletching-jna";
  }

  private static Throwable root(Throwable thrown) {
    Throwable root = thrown;
    while (root.getCause() != null) {
      root = root.getCause();
    }
    return root;
  }

  /**
   * A placeholder for an engine that failed to open, so that classes can still be initialized. It
   * reports a target and a pointer size; every other call throws.
   *
   * @param error the error of {@link #open}, which becomes the cause of each IllegalStateException
   * @return the engine
   */
  public static Engine missing(IllegalStateException error) {
    return (Engine)
        Proxy.newProxyInstance(
            Engine.class.getClassLoader(),
            new Class<?>[] {Engine.class},
            (proxy, method, arguments) -> {
              switch (method.getName()) {
                case "target": // any value: the field offsets are never used
                  return LayoutClass.of(8, 8);
                case "pointerSize":
                  return 8;
                default:
                  throw new IllegalStateException(error.getMessage(), error);
              }
            });
  }
}
