// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna;

import io.github.fletching.testing.suite.ConformanceSuite;

class JnaConformanceTest extends ConformanceSuite {}
