// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna;

import com.sun.jna.Pointer;
import io.github.fletching.testing.suite.DeclarationsSuite;

class JnaDeclarationsTest extends DeclarationsSuite {
  JnaDeclarationsTest() {
    super("io.github.fletching.jna.abi", Pointer.class);
  }
}
