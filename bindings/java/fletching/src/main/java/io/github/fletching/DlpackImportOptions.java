// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** Options of {@link Tensor#toDeviceArray}. Each method returns changed options. Immutable. */
public final class DlpackImportOptions {
  private static final DlpackImportOptions DEFAULTS = new DlpackImportOptions();

  boolean isAsStorage;
  boolean hasLists;
  boolean isCopyAllowed;
  ConsumerStream stream; // null for none

  private DlpackImportOptions() {}

  private DlpackImportOptions(DlpackImportOptions from) {
    isAsStorage = from.isAsStorage;
    hasLists = from.hasLists;
    isCopyAllowed = from.isCopyAllowed;
    stream = from.stream;
  }

  /**
   * The defaults: types that Arrow lacks become arrow.opaque, dimensions arrow.fixed_shape_tensor,
   * no element is copied, and the array has no event.
   *
   * @return the defaults
   */
  public static DlpackImportOptions defaults() {
    return DEFAULTS;
  }

  /**
   * Imports types that Arrow lacks as what stores them.
   *
   * @return changed options
   */
  public DlpackImportOptions asStorage() {
    DlpackImportOptions changed = new DlpackImportOptions(this);
    changed.isAsStorage = true;
    return changed;
  }

  /**
   * Makes dimensions fixed-size lists within each other, the last one varying fastest, in the place
   * of arrow.fixed_shape_tensor, which has any order of the inner dimensions.
   *
   * @return changed options
   */
  public DlpackImportOptions fixedSizeLists() {
    DlpackImportOptions changed = new DlpackImportOptions(this);
    changed.hasLists = true;
    return changed;
  }

  /**
   * Copies elements that are not in an order that Arrow can express, or not aligned, to new memory
   * of the CPU, if the host can read them. Without this option they are ENOTSUP.
   *
   * @return changed options
   */
  public DlpackImportOptions copyStrided() {
    DlpackImportOptions changed = new DlpackImportOptions(this);
    changed.isCopyAllowed = true;
    return changed;
  }

  /**
   * Gives the array an event that happens when the current work on the stream is done. Before a
   * copy, which has no event, the host waits for the stream. An argument that orders the host or
   * nothing gives no event.
   *
   * @param producer the stream that the producer was given; null for none
   * @return changed options
   */
  public DlpackImportOptions stream(ConsumerStream producer) {
    DlpackImportOptions changed = new DlpackImportOptions(this);
    changed.stream = producer;
    return changed;
  }
}
