// SPDX-License-Identifier: Apache-2.0

/** Shared base of both binding flavors: constants, device types, and struct offsets. */
package io.github.fletching.abi;
