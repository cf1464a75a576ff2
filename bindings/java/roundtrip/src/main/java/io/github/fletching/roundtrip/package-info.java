// SPDX-License-Identifier: Apache-2.0

/** The round trip through Java, on the safe layer: tests/roundtrip/README.md. */
package io.github.fletching.roundtrip;
