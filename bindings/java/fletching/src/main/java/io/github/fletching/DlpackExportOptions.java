// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** Options of {@link DeviceArray#toDlpack}. Each method returns changed options. Immutable. */
public final class DlpackExportOptions {
  private static final DlpackExportOptions DEFAULTS = new DlpackExportOptions();

  boolean isAsStorage;
  boolean isWritable;
  boolean isCopied;
  boolean ignoresNulls;
  boolean isEventHandled;
  boolean isAligned;
  ConsumerStream stream; // null for none

  private DlpackExportOptions() {}

  private DlpackExportOptions(DlpackExportOptions from) {
    isAsStorage = from.isAsStorage;
    isWritable = from.isWritable;
    isCopied = from.isCopied;
    ignoresNulls = from.ignoresNulls;
    isEventHandled = from.isEventHandled;
    isAligned = from.isAligned;
    stream = from.stream;
  }

  /**
   * The defaults: a read-only tensor of a type that DLPack has, without nulls and without an event,
   * whose data pointer is the first element.
   *
   * @return the defaults
   */
  public static DlpackExportOptions defaults() {
    return DEFAULTS;
  }

  /**
   * Exports types that DLPack lacks as what stores them. The unit, scale, time zone or meaning is
   * lost.
   *
   * @return changed options
   */
  public DlpackExportOptions asStorage() {
    DlpackExportOptions changed = new DlpackExportOptions(this);
    changed.isAsStorage = true;
    return changed;
  }

  /**
   * Lets the consumer write to the memory: the array is the caller's alone.
   *
   * @return changed options
   */
  public DlpackExportOptions writable() {
    DlpackExportOptions changed = new DlpackExportOptions(this);
    changed.isWritable = true;
    return changed;
  }

  /**
   * Says that the array is a copy for this consumer.
   *
   * @return changed options
   */
  public DlpackExportOptions copied() {
    DlpackExportOptions changed = new DlpackExportOptions(this);
    changed.isCopied = true;
    return changed;
  }

  /**
   * Exports an array with nulls. Their elements have the memory's contents.
   *
   * @return changed options
   */
  public DlpackExportOptions ignoreNulls() {
    DlpackExportOptions changed = new DlpackExportOptions(this);
    changed.ignoresNulls = true;
    return changed;
  }

  /**
   * Says that the consumer waits for the array's event in another way.
   *
   * @return changed options
   */
  public DlpackExportOptions eventHandled() {
    DlpackExportOptions changed = new DlpackExportOptions(this);
    changed.isEventHandled = true;
    return changed;
  }

  /**
   * Makes the data pointer a multiple of 256, as dlpack.h demands, with the first element at
   * byte_offset. Some consumers ignore byte_offset. On devices whose buffers are handles the
   * pointer is the handle in any case.
   *
   * @return changed options
   */
  public DlpackExportOptions aligned() {
    DlpackExportOptions changed = new DlpackExportOptions(this);
    changed.isAligned = true;
    return changed;
  }

  /**
   * Orders the consumer's stream behind the array's event. The stream is used during the call only.
   *
   * @param consumer the stream that the consumer passed; null for none
   * @return changed options
   */
  public DlpackExportOptions stream(ConsumerStream consumer) {
    DlpackExportOptions changed = new DlpackExportOptions(this);
    changed.stream = consumer;
    return changed;
  }
}
