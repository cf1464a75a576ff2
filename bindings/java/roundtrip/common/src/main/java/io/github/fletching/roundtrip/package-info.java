// SPDX-License-Identifier: Apache-2.0

/** The round trip of ../README.md for both flavors of the Java binding. */
package io.github.fletching.roundtrip;
