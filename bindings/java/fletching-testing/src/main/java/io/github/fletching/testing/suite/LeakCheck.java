// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.fletching.abi.engine.Handles;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Fails a test that does not release all its exports. */
public final class LeakCheck implements BeforeEachCallback, AfterEachCallback {
  private int exported;

  @Override
  public void beforeEach(ExtensionContext context) {
    exported = Handles.count();
  }

  @Override
  public void afterEach(ExtensionContext context) {
    assertEquals(exported, Handles.count(), "exported objects that are not released");
  }
}
