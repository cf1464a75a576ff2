// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import io.github.fletching.testing.AbiSuite;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Compares every struct with the oracle. */
class AbiTest {
  @TestFactory
  Stream<DynamicTest> everyStructMatchesOracle() {
    return new AbiSuite("java-jna", JnaStruct.all())
        .checks().stream().map(check -> dynamicTest(check.name(), check::run));
  }
}
