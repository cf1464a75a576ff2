// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm;

import io.github.fletching.testing.suite.PretendedContextsSuite;

class FfmPretendedContextsTest extends PretendedContextsSuite {}
