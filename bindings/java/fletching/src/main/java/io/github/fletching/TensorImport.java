// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.ArrowConstants;
import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.DlpackConstants;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/** Imports tensors as device arrays: lists around the values, each of which may be moved out. */
final class TensorImport {
  private static final String OPERATION = "toDeviceArray";

  private final DlpackImportOptions options;
  private final TensorLayout layout;
  private final boolean isOpaque;
  private final int parts; // 2 for a complex number, stored as a list of two

  private TensorImport(TensorLayout layout, DlpackImportOptions options) {
    this.layout = layout;
    this.options = options;
    isOpaque = layout.type.typeName != null && !options.isAsStorage;
    parts = isOpaque ? layout.type.parts : 1;
  }

  /** Consumes the tensor. */
  static ImportedTensor run(Tensor tensor, DlpackImportOptions options) {
    Tensor owner = tensor.movedBy(OPERATION, slot -> new Tensor(tensor.kind, slot));
    try {
      return Events.named(OPERATION, () -> read(owner, options));
    } catch (Throwable thrown) {
      owner.close(); // no effect if the array has closed it
      throw thrown;
    }
  }

  private static ImportedTensor read(Tensor owner, DlpackImportOptions options) {
    long managed = owner.address();
    Tensor.checkFlags(owner.kind, managed);
    long flags = Tensor.flagsOf(owner.kind, managed);
    boolean isPadded = (flags & DlpackConstants.DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0;
    TensorLayout layout = TensorLayout.read(managed + owner.kind.tensor, isPadded, options);
    return new TensorImport(layout, options).run(owner, flags);
  }

  private ImportedTensor run(Tensor owner, long flags) {
    DeviceType type = layout.deviceType();
    try {
      layout.arrange();
    } catch (FletchingException e) {
      boolean canCopy = options.isCopyAllowed && ConsumerStream.isHostReadable(type);
      if (e.errno() != FletchingException.ENOTSUP || !canCopy) {
        throw e;
      }
      ImportedTensor copied = copy();
      owner.close();
      return copied;
    }
    boolean isReadOnly = (flags & DlpackConstants.DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
    boolean isCopied = (flags & DlpackConstants.DLPACK_FLAG_BITMASK_IS_COPIED) != 0;
    int id = layout.deviceId();
    ImportedTensor view = build(type, id, owner, isReadOnly, isCopied);
    try {
      record(view.array(), type);
    } catch (Throwable thrown) {
      view.close();
      throw thrown;
    }
    return view;
  }

  /** Returns a CPU array, because the new memory is CPU memory on every device. */
  private ImportedTensor copy() {
    finish();
    layout.copy();
    long memory = layout.buffer;
    AutoCloseable free = () -> C.free(memory);
    try {
      return build(DeviceType.CPU, 0, free, false, true);
    } catch (Throwable thrown) {
      C.free(memory);
      throw thrown;
    }
  }

  private DeviceStream stream() {
    return options.stream == null ? null : options.stream.stream().orElse(null);
  }

  /** Blocks until the current work on the stream is done. */
  private void finish() {
    DeviceStream stream = stream();
    if (stream == null) {
      return;
    }
    DeviceType type = layout.deviceType();
    DeviceStream there = completed(stream, type);
    Vendor vendor = Events.recording(type, there.deviceType());
    // A host wait for an event sleeps. A host wait for a stream may spin.
    try (Recorded recorded = vendor.record(there)) {
      vendor.synchronize(new SyncEvent(type, there.deviceId(), recorded.address));
    } catch (FletchingException e) {
      throw Vendor.withCaptureHint(e, "copy before the capture begins");
    }
  }

  private void record(DeviceArray array, DeviceType type) {
    DeviceStream stream = stream();
    if (stream == null) {
      return;
    }
    Events.recording(type, type); // throws if the type cannot record events
    Events.export(array, completed(stream, type), OPERATION);
  }

  private DeviceStream completed(DeviceStream stream, DeviceType type) {
    if (RuntimeKind.of(type) != null) { // any GPU may write to host memory
      stream.checked(type);
    }
    return stream.completed(deviceOfStreams(type, layout.deviceId()));
  }

  /**
   * The device of a default stream. Host-readable memory has device id 0 in DLPack, which does not
   * identify a GPU: use the current device (-1) instead, if there is one.
   */
  static long deviceOfStreams(DeviceType type, int id) {
    if (!ConsumerStream.isHostReadable(type)) {
      return id;
    }
    Vendor vendor = Vendor.of(type);
    return vendor != null && vendor.isNoneCurrent() ? id : -1;
  }

  // --- The structs

  private ImportedTensor build(
      DeviceType type, int id, Object object, boolean isReadOnly, boolean isCopied) {
    String parameters = "";
    List<Integer> lists = new ArrayList<>(); // outermost first; the values follow the last one
    if (options.hasLists) {
      for (int i = 1; i < layout.ndim; i++) {
        addList(lists, layout.shape[i]);
      }
    } else if (layout.ndim > 1) {
      addList(lists, cellSize());
      parameters = tensorParameters();
    }
    if (parts > 1) {
      addList(lists, parts);
    }
    Schema schema = built(schema(lists, parameters)::build);
    try {
      long deviceId = type.equals(DeviceType.CPU) ? -1 : id;
      DeviceArray array = built(() -> array(lists).buildOn(type, deviceId, 0, object));
      return new ImportedTensor(schema, array, isReadOnly, isCopied);
    } catch (Throwable thrown) {
      schema.close();
      throw thrown;
    }
  }

  /** Calls a builder, and names this operation in its ENOMEM error. */
  private static <T> T built(Supplier<T> build) {
    try {
      return build.get();
    } catch (FletchingException e) {
      throw e.errno() == FletchingException.ENOMEM ? FletchingException.noMemory(OPERATION) : e;
    }
  }

  private static void addList(List<Integer> lists, long size) {
    if (size > Integer.MAX_VALUE) {
      throw FletchingException.unsupported(
          "DLTensor.shape: inner dimensions too large for a fixed-size list: expected at most"
              + " 2147483647 elements");
    }
    lists.add((int) size);
  }

  /** The product of the inner sizes. */
  private long cellSize() {
    long size = 1;
    for (int i = 1; i < layout.ndim; i++) {
      if (layout.shape[i] == 0) {
        return 0;
      }
      size = Sizes.nextStep(size, layout.shape[i]);
    }
    return size;
  }

  /** The parameters of arrow.fixed_shape_tensor. */
  private String tensorParameters() {
    int count = layout.order.length;
    List<Long> shape = new ArrayList<>();
    Integer[] permutation = new Integer[count];
    boolean isInOrder = true;
    for (int i = 0; i < count; i++) {
      int axis = layout.order[i];
      shape.add(layout.shape[axis]);
      permutation[axis - 1] = i;
      isInOrder = isInOrder && axis == i + 1;
    }
    String text = "{\"shape\":" + shape;
    text += isInOrder ? "}" : ",\"permutation\":" + List.of(permutation) + "}";
    return text.replace(" ", "");
  }

  private SchemaBuilder schema(List<Integer> lists, String parameters) {
    String extension = layout.type.typeName == null || isOpaque ? layout.type.extension : null;
    // The list of parts has the extension type, if it exists; else the values have it.
    int extended = lists.size() - (parts > 1 ? 1 : 0);
    SchemaBuilder inner = null;
    for (int i = lists.size(); i >= 0; i--) {
      String format = i < lists.size() ? "+w:" + lists.get(i) : layout.type.format;
      SchemaBuilder level =
          new SchemaBuilder(format)
              .name(i == 0 ? "" : "item")
              .flags(ArrowConstants.ARROW_FLAG_NULLABLE);
      if (i == 0 && !parameters.isEmpty()) {
        level.metadata(extension(TensorTypes.FIXED_SHAPE_TENSOR, parameters));
      } else if (extension != null && i == extended) {
        level.metadata(extension(extension, isOpaque ? opaqueParameters() : ""));
      }
      inner = inner == null ? level : level.child(inner);
    }
    return inner;
  }

  private static Metadata extension(String name, String parameters) {
    return Metadata.EMPTY.with(Extension.NAME, name).with(Extension.PARAMETERS, parameters);
  }

  private String opaqueParameters() {
    return String.format(
        "{\"type_name\":\"%s\",\"vendor_name\":\"%s\"}", layout.type.typeName, TensorTypes.VENDOR);
  }

  private ArrayBuilder array(List<Integer> lists) {
    long[] lengths = new long[lists.size() + 1];
    lengths[0] = layout.ndim > 0 ? layout.shape[0] : 1;
    for (int i = 0; i < lists.size(); i++) {
      lengths[i + 1] = Sizes.multiply(lengths[i], lists.get(i));
      if (lengths[i + 1] < 0) {
        // Possible only for empty tensors, because other elements have been counted.
        throw FletchingException.unsupported(
            "DLTensor.shape: too many lists: expected fewer than 2^63 rows of them");
      }
    }
    ArrayBuilder inner =
        new ArrayBuilder(lengths[lists.size()]).offset(layout.offset).buffers(0, layout.buffer);
    for (int i = lists.size() - 1; i >= 0; i--) {
      inner = new ArrayBuilder(lengths[i]).buffers(0).child(inner);
    }
    return inner;
  }
}
