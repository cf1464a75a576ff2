// SPDX-License-Identifier: Apache-2.0

/**
 * What both flavors of the binding share: constants, device types, and the offsets of the structs.
 */
package io.github.fletching.abi;
