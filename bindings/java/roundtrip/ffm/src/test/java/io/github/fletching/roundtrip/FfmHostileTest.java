// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

class FfmHostileTest extends HostileTest {
  FfmHostileTest() {
    super(FfmTransit.STRUCTS, FfmTransit.TRANSIT);
  }
}
