// SPDX-License-Identifier: Apache-2.0

/**
 * What the tests of both flavors share. Not published.
 *
 * <p>The oracle and the reference producer are called through JNA in both flavors, so that no
 * flavor tests itself.
 */
package io.github.fletching.testing;
