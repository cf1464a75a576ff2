// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** Options of {@link DeviceArray#toDlpack}. Each method returns a modified copy. Immutable. */
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
   * The defaults: a read-only tensor of a DLPack type, without nulls and without an event, whose
   * data pointer is the address of the first element.
   *
   * @return the defaults
   */
  public static DlpackExportOptions defaults() {
    return DEFAULTS;
  }

  /**
   * Exports types that DLPack lacks as their storage type. The unit, scale, time zone or meaning is
   * lost.
   *
   * @return the modified options
   */
  public DlpackExportOptions asStorage() {
    DlpackExportOptions changed = new DlpackExportOptions(this);
    changed.isAsStorage = true;
    return changed;
  }

  /**
   * Marks the memory as writable by the consumer. The caller must be the only user of the array.
   *
   * @return the modified options
   */
  public DlpackExportOptions writable() {
    DlpackExportOptions changed = new DlpackExportOptions(this);
    changed.isWritable = true;
    return changed;
  }

  /**
   * Marks the array as a copy made for this consumer.
   *
   * @return the modified options
   */
  public DlpackExportOptions copied() {
    DlpackExportOptions changed = new DlpackExportOptions(this);
    changed.isCopied = true;
    return changed;
  }

  /**
   * Exports arrays with nulls. Null elements have the values in memory.
   *
   * @return the modified options
   */
  public DlpackExportOptions ignoreNulls() {
    DlpackExportOptions changed = new DlpackExportOptions(this);
    changed.ignoresNulls = true;
    return changed;
  }

  /**
   * Declares that the consumer waits for the array's event by other means.
   *
   * @return the modified options
   */
  public DlpackExportOptions eventHandled() {
    DlpackExportOptions changed = new DlpackExportOptions(this);
    changed.isEventHandled = true;
    return changed;
  }

  /**
   * Aligns the data pointer to 256 bytes, as dlpack.h requires, and locates the first element with
   * byte_offset. Some consumers ignore byte_offset. On devices whose buffers are handles, the
   * pointer is always the handle.
   *
   * @return the modified options
   */
  public DlpackExportOptions aligned() {
    DlpackExportOptions changed = new DlpackExportOptions(this);
    changed.isAligned = true;
    return changed;
  }

  /**
   * Orders the consumer's stream after the array's event. The stream is used only during the call.
   *
   * @param consumer the stream argument of the consumer; null for none
   * @return the modified options
   */
  public DlpackExportOptions stream(ConsumerStream consumer) {
    DlpackExportOptions changed = new DlpackExportOptions(this);
    changed.stream = consumer;
    return changed;
  }
}
