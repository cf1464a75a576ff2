// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** What a {@link ConsumerStream} orders behind the work of the producer. */
public enum Ordering {
  /** Nothing: the consumer synchronizes, or has waited. */
  NONE,
  /** The host: the work is done on return. */
  HOST,
  /** A stream, which waits for the work. */
  STREAM
}
