// SPDX-License-Identifier: Apache-2.0

/**
 * Test helpers that both flavors share. Not published.
 *
 * <p>Both flavors call the oracle and the reference producer through JNA, so that no flavor tests
 * itself.
 */
package io.github.fletching.testing;
