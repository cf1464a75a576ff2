// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm;

import io.github.fletching.ReadersSuite;

class FfmReadersTest extends ReadersSuite {}
