// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** What an event says when it is asked. */
enum EventState {
  DONE,
  PENDING,
  /** The answer is an error. */
  FAILED
}
