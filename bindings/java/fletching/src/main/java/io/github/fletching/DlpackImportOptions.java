// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** Options of {@link Tensor#toDeviceArray}. Each method returns a modified copy. Immutable. */
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
   * The defaults: types that Arrow lacks become arrow.opaque, several dimensions become
   * arrow.fixed_shape_tensor, no element is copied, and the array has no event.
   *
   * @return the defaults
   */
  public static DlpackImportOptions defaults() {
    return DEFAULTS;
  }

  /**
   * Imports types that Arrow lacks as their storage type.
   *
   * @return the modified options
   */
  public DlpackImportOptions asStorage() {
    DlpackImportOptions changed = new DlpackImportOptions(this);
    changed.isAsStorage = true;
    return changed;
  }

  /**
   * Imports dimensions as nested fixed-size lists, the last one varying fastest, instead of
   * arrow.fixed_shape_tensor, which allows any order of the inner dimensions.
   *
   * @return the modified options
   */
  public DlpackImportOptions fixedSizeLists() {
    DlpackImportOptions changed = new DlpackImportOptions(this);
    changed.hasLists = true;
    return changed;
  }

  /**
   * Copies elements to new CPU memory if their order is not expressible in Arrow or they are
   * misaligned, provided that the host can read them. Without this option they cause ENOTSUP.
   *
   * @return the modified options
   */
  public DlpackImportOptions copyStrided() {
    DlpackImportOptions changed = new DlpackImportOptions(this);
    changed.isCopyAllowed = true;
    return changed;
  }

  /**
   * Adds an event that completes when the current work on the stream is done. A copied array has no
   * event: the host waits for the stream before the copy. A stream argument with host ordering or
   * no ordering adds no event.
   *
   * @param producer the stream argument passed to the producer; null for none
   * @return the modified options
   */
  public DlpackImportOptions stream(ConsumerStream producer) {
    DlpackImportOptions changed = new DlpackImportOptions(this);
    changed.stream = producer;
    return changed;
  }
}
