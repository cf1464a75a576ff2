// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** The answer to a query of an event. */
enum EventState {
  DONE,
  PENDING,
  /** The answer is an error. */
  FAILED
}
