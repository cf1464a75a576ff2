// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/**
 * What an operation does on a stream that is being captured into a CUDA or HIP graph. On any other
 * stream, and with any other runtime, it makes no difference.
 */
public enum OnCapture {
  /** EBUSY, before a call that would invalidate the capture. */
  REFUSE,

  /**
   * The graph records the event, or waits for it, each time it is launched. The graph does not keep
   * the event: the array must not be released before the graph and everything instantiated from it
   * are destroyed. Before the first launch an event that the graph records counts as done, so that
   * the array must not be handed on before. ENOTSUP for a runtime without such events: CUDA has
   * them from 11.1 on, ROCm from 7.0 on.
   */
  EXTERNAL,

  /**
   * Of {@link DeviceArray#releaseAfter}, for an array that the graph does not read: it is kept
   * until the capture has ended and the stream has passed. The stream must live until then. A
   * launch of the graph may come later: an array that it reads must live longer than the graph. For
   * every other operation this is {@link #REFUSE}.
   */
  KEEP
}
