// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/**
 * The behavior of an operation on a stream that is being captured into a CUDA or HIP graph. It has
 * no effect on other streams and other runtimes.
 */
public enum OnCapture {
  /** Throws EBUSY before a call that would invalidate the capture. */
  REFUSE,

  /**
   * Makes the graph record the event, or wait for it, at each launch. The graph does not keep the
   * event alive: do not release the array before the graph and all its instances are destroyed.
   * Before the first launch, an event recorded by the graph counts as completed: do not pass the
   * array on earlier. Throws ENOTSUP for a runtime without such events: CUDA before 11.1, ROCm
   * before 7.0.
   */
  EXTERNAL,

  /**
   * For {@link DeviceArray#releaseAfter} and an array that the graph does not read: keeps the array
   * until the capture has ended and the stream has completed its work. The stream must live until
   * then. The graph may be launched later, so an array that it reads must outlive the graph. For
   * all other operations this is {@link #REFUSE}.
   */
  KEEP
}
