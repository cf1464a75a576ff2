// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** The party that waits for the producer's work; see {@link ConsumerStream}. */
public enum Ordering {
  /** No party: the consumer synchronizes, or has already waited. */
  NONE,
  /** The host: the work has completed on return. */
  HOST,
  /** A stream: it waits for the work. */
  STREAM
}
