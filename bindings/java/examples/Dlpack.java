// SPDX-License-Identifier: Apache-2.0

// Exports rows of float32 as a tensor, and imports another library's tensor as an array.
// Prints: an array of 2: +w:3 on cpu, read-only: true

import io.github.fletching.ArrayBuilder;
import io.github.fletching.DeviceArray;
import io.github.fletching.DlpackImportOptions;
import io.github.fletching.ImportedTensor;
import io.github.fletching.Schema;
import io.github.fletching.SchemaBuilder;
import io.github.fletching.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

final class Dlpack {
  /** Returns the address of a DLManagedTensorVersioned; the receiver must call its deleter. */
  static long produce() {
    ByteBuffer values = ByteBuffer.allocateDirect(24).order(ByteOrder.nativeOrder());
    ArrayBuilder floats = new ArrayBuilder(6).buffers(null, values);
    DeviceArray rows = new ArrayBuilder(2).buffers(0).child(floats).build(null).toDevice();
    try (Schema schema = new SchemaBuilder("+w:3").child(new SchemaBuilder("f")).build()) {
      return rows.toDlpack(schema).detach();
    }
  }

  public static void main(String[] arguments) {
    Tensor tensor = Tensor.wrap(produce());
    System.out.println(tensor.dtype() + " " + Arrays.toString(tensor.shape()));
    DlpackImportOptions lists = DlpackImportOptions.defaults().fixedSizeLists();
    try (ImportedTensor imported = tensor.toDeviceArray(lists)) {
      DeviceArray array = imported.array();
      System.out.print("an array of " + array.length() + ": " + imported.schema().format());
      System.out.println(" on " + array.deviceType() + ", read-only: " + imported.isReadOnly());
    }
  }
}
