// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna;

import io.github.fletching.testing.suite.StandinVectorsSuite;

class JnaStandinVectorsTest extends StandinVectorsSuite {}
