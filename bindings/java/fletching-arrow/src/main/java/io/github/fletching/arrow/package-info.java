// SPDX-License-Identifier: Apache-2.0

/**
 * Converts between Fletching's owners and arrow-java's vectors without copying the data. A separate
 * artifact, so that {@code fletching} depends on no Arrow library.
 *
 * <p>See the Arrow C data interface and the Arrow C stream interface.
 */
package io.github.fletching.arrow;
