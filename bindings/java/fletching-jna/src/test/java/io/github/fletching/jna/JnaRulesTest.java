// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna;

import com.sun.jna.Pointer;
import io.github.fletching.testing.suite.RulesSuite;

class JnaRulesTest extends RulesSuite {
  JnaRulesTest() {
    super("io.github.fletching.jna.abi", Pointer.class);
  }
}
