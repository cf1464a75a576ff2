// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import io.github.fletching.testing.suite.Script.Flavor;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A test of a rule of streams and of the same rule of device streams: it runs once for each. */
@Retention(RetentionPolicy.RUNTIME)
@ParameterizedTest
@EnumSource(Flavor.class)
@interface BothStreams {
  /** The rule of device streams, as the name of a test; the method has the name of the other. */
  String also();
}
