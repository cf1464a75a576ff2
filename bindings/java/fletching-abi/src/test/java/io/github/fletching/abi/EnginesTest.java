// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.abi.engine.Engine;
import io.github.fletching.abi.engine.EngineProvider;
import io.github.fletching.abi.engine.Engines;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.ServiceConfigurationError;
import org.junit.jupiter.api.Test;

class EnginesTest {
  private final List<String> opened = new ArrayList<>();
  private final Engine engine =
      (Engine)
          Proxy.newProxyInstance(
              Engine.class.getClassLoader(), new Class<?>[] {Engine.class}, (a, b, c) -> null);

  private final class Fake implements EngineProvider {
    private final String name;
    private final int rank;
    private final Throwable failure;

    Fake(String name, int rank, Throwable failure) {
      this.name = name;
      this.rank = rank;
      this.failure = failure;
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public int rank() {
      return rank;
    }

    @Override
    public Engine open() {
      if (failure instanceof Error) {
        throw (Error) failure;
      }
      if (failure != null) {
        throw (RuntimeException) failure;
      }
      opened.add(name);
      return engine;
    }
  }

  private void open(String wanted, EngineProvider... providers) {
    assertSame(engine, Engines.open(List.of(providers), wanted));
  }

  @Test
  void openPicksHighestWorkingRank() {
    Fake jna = new Fake("jna", 1, null);
    Fake ffm = new Fake("ffm", 2, null);
    Fake old = new Fake("ffm", 2, new UnsupportedOperationException("Java 17"));
    open(null, jna, ffm);
    open(null, ffm, jna);
    open(null, jna, old);
    open("jna", ffm, jna);
    assertEquals(List.of("ffm", "ffm", "jna", "jna"), opened);
  }

  @Test
  void deniedAccessErrorHasCauseAndHint() {
    Throwable denied = new IllegalCallerException("Illegal native access");
    Fake ffm = new Fake("ffm", 2, new ExceptionInInitializerError(denied));
    Fake jna = new Fake("jna", 1, new NoClassDefFoundError());
    IllegalStateException error =
        assertThrows(IllegalStateException.class, () -> open(null, ffm, jna));
    assertEquals(
        "engine: none available: expected ffm or jna, got ffm failed: Illegal native access, jna"
            + " failed: java.lang.NoClassDefFoundError; hint: start java with"
            + " --enable-native-access=ALL-UNNAMED, or with the name of the module that calls C",
        error.getMessage());
    assertSame(denied, error.getCause().getCause());
    assertEquals(1, error.getSuppressed().length);
  }

  @Test
  void brokenProviderDoesNotHideOthers() {
    Fake jna = new Fake("jna", 1, null);
    Iterable<EngineProvider> broken =
        () ->
            new Iterator<>() {
              private boolean first = true;

              @Override
              public boolean hasNext() {
                return true;
              }

              @Override
              public EngineProvider next() {
                if (!first) {
                  throw new ServiceConfigurationError("not a subtype");
                }
                first = false;
                return jna;
              }
            };
    assertSame(engine, Engines.open(broken, null));
    IllegalStateException error =
        assertThrows(IllegalStateException.class, () -> Engines.open(broken, "ffm"));
    assertTrue(error.getMessage().contains("got jna not chosen, not a subtype"));
    Engine missing = Engines.missing(error);
    assertEquals(8, missing.pointerSize());
    IllegalStateException again =
        assertThrows(IllegalStateException.class, () -> missing.allocate(1));
    assertEquals(error.getMessage(), again.getMessage());
    assertSame(error, again.getCause());
  }

  @Test
  void noEngineErrorNamesReasons() {
    String hint = "; hint: add fletching-ffm (Java 22 or later) or fletching-jna";
    assertEquals(
        "engine: none available: expected ffm or jna, got no artifact" + hint,
        assertThrows(IllegalStateException.class, () -> open(null)).getMessage());
    Fake jna = new Fake("jna", 1, new NoClassDefFoundError("com/sun/jna/Native"));
    Fake ffm = new Fake("ffm", 2, new UnsupportedOperationException("expected Java 22"));
    assertEquals(
        "engine: none available: expected ffm or jna, got ffm failed: expected Java 22, jna failed:"
            + " com/sun/jna/Native"
            + hint,
        assertThrows(IllegalStateException.class, () -> open(null, jna, ffm)).getMessage());
    assertEquals(
        "engine: none available: expected io.github.fletching.engine=ffm, got ffm failed: expected"
            + " Java 22, jna not chosen"
            + hint,
        assertThrows(IllegalStateException.class, () -> open("ffm", jna, ffm)).getMessage());
  }
}
