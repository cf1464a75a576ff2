// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi.engine;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** Chooses the engine. */
public final class Engines {
  /** The system property that chooses: {@code ffm} or {@code jna}. */
  public static final String PROPERTY = "io.github.fletching.engine";

  private Engines() {}

  /**
   * Opens the engine that is called {@code wanted}, or without a name the first that can be opened.
   *
   * @throws IllegalStateException when there is none, with what each of them said
   */
  public static Engine open(Iterable<EngineProvider> providers, String wanted) {
    List<EngineProvider> found = new ArrayList<>();
    providers.forEach(found::add);
    found.sort(Comparator.comparingInt(EngineProvider::rank).reversed());
    List<String> refusals = new ArrayList<>();
    for (EngineProvider provider : found) {
      if (wanted != null && !wanted.equals(provider.name())) {
        refusals.add(provider.name() + " not chosen");
        continue;
      }
      try {
        return provider.open();
      } catch (UnsupportedOperationException | LinkageError e) {
        refusals.add(provider.name() + " failed: " + e.getMessage());
      }
    }
    throw new IllegalStateException(
        "engine: none available: expected "
            + (wanted == null ? "ffm or jna" : PROPERTY + "=" + wanted)
            + ", got "
            + (refusals.isEmpty() ? "no artifact" : String.join(", ", refusals))
            + "; hint: add fletching-ffm (Java 22 or later) or fletching-jna");
  }
}
