// SPDX-License-Identifier: Apache-2.0

/** Internal support classes shared by the engines. */
package io.github.fletching.abi.engine;
