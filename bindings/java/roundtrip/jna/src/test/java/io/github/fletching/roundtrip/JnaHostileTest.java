// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

class JnaHostileTest extends HostileTest {
  JnaHostileTest() {
    super(JnaTransit.STRUCTS, JnaTransit.TRANSIT);
  }
}
