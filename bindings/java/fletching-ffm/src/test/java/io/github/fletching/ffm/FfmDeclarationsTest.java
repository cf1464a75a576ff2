// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm;

import io.github.fletching.testing.suite.DeclarationsSuite;
import java.lang.foreign.MemorySegment;

class FfmDeclarationsTest extends DeclarationsSuite {
  FfmDeclarationsTest() {
    super("io.github.fletching.ffm.abi", MemorySegment.class);
  }
}
