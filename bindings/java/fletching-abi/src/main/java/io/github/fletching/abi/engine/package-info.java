// SPDX-License-Identifier: Apache-2.0

/** What the engines share; for them alone. */
package io.github.fletching.abi.engine;
