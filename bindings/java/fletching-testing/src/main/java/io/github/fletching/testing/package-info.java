// SPDX-License-Identifier: Apache-2.0

/**
 * What the tests of both flavors share. Not published.
 *
 * <p>The oracle and the reference producer are called through JNA in either flavor: they are the
 * judges, and only what is judged comes from the flavor.
 */
package io.github.fletching.testing;
