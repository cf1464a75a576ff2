// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm;

import static org.junit.jupiter.api.Assertions.assertNull;

import io.github.fletching.testing.suite.LoadersTest;
import java.lang.ref.WeakReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** JNA keeps the class loader of every function. */
class FfmLoadersTest {
  @Test
  @Timeout(60)
  void classLoaderIsUnloadedAfterShutdown() throws Exception {
    for (int i = 0; i < 3; i++) {
      WeakReference<ClassLoader> loader = LoadersTest.useAndShutDown();
      while (loader.get() != null && !Thread.interrupted()) {
        System.gc();
      }
      assertNull(loader.get());
    }
  }
}
