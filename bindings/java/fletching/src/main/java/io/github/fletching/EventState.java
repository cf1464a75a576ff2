// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** The result of an event query. */
enum EventState {
  DONE,
  PENDING,
  /** The query returned an error. */
  FAILED
}
