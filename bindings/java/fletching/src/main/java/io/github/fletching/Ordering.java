// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** Who waits for the work of the producer; see {@link ConsumerStream}. */
public enum Ordering {
  /** Nobody: the consumer synchronizes, or has waited. */
  NONE,
  /** The host: the work is done on return. */
  HOST,
  /** A stream, which waits for the work. */
  STREAM
}
