// SPDX-License-Identifier: Apache-2.0

/** Tests of the safe layer, which each engine runs. */
package io.github.fletching.testing.suite;
