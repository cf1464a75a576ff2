// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

/** A tensor imported by {@link Tensor#toDeviceArray}: an Arrow schema and array, both owned. */
public final class ImportedTensor implements AutoCloseable {
  private final Schema schema;
  private final DeviceArray array;
  private final boolean isReadOnly;
  private final boolean isCopied;

  ImportedTensor(Schema schema, DeviceArray array, boolean isReadOnly, boolean isCopied) {
    this.schema = schema;
    this.array = array;
    this.isReadOnly = isReadOnly;
    this.isCopied = isCopied;
  }

  /**
   * The type of the array, without a name.
   *
   * @return the schema
   */
  public Schema schema() {
    return schema;
  }

  /**
   * The array.
   *
   * @return the array
   */
  public DeviceArray array() {
    return array;
  }

  /**
   * Whether the memory is read-only. A legacy tensor counts as read-only.
   *
   * @return whether the memory is read-only
   */
  public boolean isReadOnly() {
    return isReadOnly;
  }

  /**
   * Whether the memory is a copy for this import only, made by the producer or by this library.
   *
   * @return whether the memory is a copy
   */
  public boolean isCopied() {
    return isCopied;
  }

  /** Closes the schema and the array, unless they were moved. */
  @Override
  public void close() {
    schema.close();
    array.close();
  }
}
