// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm;

import io.github.fletching.testing.suite.RulesSuite;
import java.lang.foreign.MemorySegment;

class FfmRulesTest extends RulesSuite {
  FfmRulesTest() {
    super("io.github.fletching.ffm.abi", MemorySegment.class);
  }
}
