// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm;

import io.github.fletching.testing.suite.ConformanceSuite;

class FfmConformanceTest extends ConformanceSuite {}
