// SPDX-License-Identifier: Apache-2.0

/**
 * Converts between the owners of Fletching and the vectors of arrow-java, without a copy of the
 * data. It is an artifact of its own, so that {@code fletching} depends on no Arrow library.
 *
 * <p>Text: Arrow C data interface, Arrow C stream interface.
 */
package io.github.fletching.arrow;
