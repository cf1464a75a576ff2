// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm;

import static org.junit.jupiter.api.Assertions.assertNull;

import io.github.fletching.testing.suite.LoadersSuite;
import java.lang.ref.WeakReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class FfmLoadersTest extends LoadersSuite {
  @Test
  @Timeout(60)
  void classLoaderIsUnloadedAfterShutdown() throws Exception {
    for (int i = 0; i < 3; i++) {
      WeakReference<ClassLoader> loader = useAndShutDown();
      while (loader.get() != null && !Thread.interrupted()) {
        System.gc();
      }
      assertNull(loader.get());
    }
  }
}
