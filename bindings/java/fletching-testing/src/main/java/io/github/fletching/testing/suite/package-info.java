// SPDX-License-Identifier: Apache-2.0

/** The tests of the safe layer, which each engine runs. */
package io.github.fletching.testing.suite;
