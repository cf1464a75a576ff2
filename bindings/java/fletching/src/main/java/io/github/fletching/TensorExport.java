// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.DlpackConstants;
import io.github.fletching.abi.Errno;

/** Exports device arrays as tensors. */
final class TensorExport {
  private static final int ALIGNMENT = 256; // alignment of DLTensor.data

  private TensorExport() {}

  /** Moves the array into a tensor. After an error the caller still owns the array. */
  static Tensor run(Kind kind, Schema schema, DeviceArray array, DlpackExportOptions options) {
    String operation = kind == Kind.LEGACY_TENSOR ? "toLegacyDlpack" : "toDlpack";
    return Events.named(
        operation,
        () -> {
          if (kind == Kind.LEGACY_TENSOR && !options.isWritable) {
            throw FletchingException.invalid(
                "DLManagedTensor: no flag for read-only memory; hint: export a versioned tensor, or"
                    + " mark the memory as writable");
          }
          schema.open(operation);
          return array.movedBy(operation, slot -> export(operation, kind, schema, slot, options));
        });
  }

  private static Tensor export(
      String operation, Kind kind, Schema schema, Slot slot, DlpackExportOptions options) {
    long struct = slot.address;
    DeviceType type = DeviceType.of(C.getInt(struct + Fields.DEVICE_ARRAY_DEVICE_TYPE));
    long id = C.getLong(struct + Fields.DEVICE_ARRAY_DEVICE_ID);
    long event = C.getAddress(struct + Fields.DEVICE_ARRAY_SYNC_EVENT);
    if (event != 0 && options.stream == null && !options.isEventHandled) {
      throw FletchingException.invalid(
          "ArrowDeviceArray.sync_event: not NULL: expected NULL, because a tensor has no event;"
              + " hint: pass the consumer's stream, or wait and pass eventHandled()");
    }
    if (event != 0 && options.stream != null) {
      order(new SyncEvent(type, id, event), options.stream);
    }
    boolean hasWaited = options.stream != null && options.stream.ordering() == Ordering.HOST;
    boolean isReadable = (hasWaited || event == 0) && ConsumerStream.isHostReadable(type);
    TensorWalk walk;
    long schemaStruct = schema.enter(operation);
    try {
      walk = TensorWalk.describe(schemaStruct, struct, options, isReadable);
    } finally {
      schema.leave();
    }
    TensorBuilder like = new TensorBuilder(walk.dtype, walk.shape()).strides(walk.strides());
    like.on(type, toDlpackId(type, id));
    point(like, walk, type, options);
    long flags = options.isWritable ? 0 : DlpackConstants.DLPACK_FLAG_BITMASK_READ_ONLY;
    flags |= options.isCopied ? DlpackConstants.DLPACK_FLAG_BITMASK_IS_COPIED : 0;
    if (walk.isPadded) {
      if (kind == Kind.LEGACY_TENSOR) {
        throw FletchingException.unsupported(
            "DLManagedTensor: no flag for padded values; hint: export a versioned tensor");
      }
      flags |= DlpackConstants.DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
    }
    return like.build(kind, flags, new DeviceArray(slot), operation);
  }

  /** Makes the host or the consumer's stream wait for the event. */
  private static void order(SyncEvent event, ConsumerStream consumer) {
    DeviceType type = event.deviceType();
    if (consumer.ordering() == Ordering.HOST) {
      Waiters.of(type).synchronize(event);
    } else if (consumer.ordering() == Ordering.STREAM) {
      DeviceStream there = consumer.stream().orElseThrow().completed(event.deviceId());
      there.checked(type);
      Waiters.of(type).waitOn(event, there);
    }
  }

  /** Host-readable memory has device id 0 in DLPack, and any id in Arrow. */
  private static int toDlpackId(DeviceType type, long id) {
    if (ConsumerStream.isHostReadable(type)) {
      return 0;
    }
    if (id != (int) id) {
      throw new FletchingException(
          Errno.ERANGE,
          "ArrowDeviceArray.device_id: out of range for DLPack: expected an int32, got " + id);
    }
    return (int) id;
  }

  private static void point(
      TensorBuilder like, TensorWalk walk, DeviceType type, DlpackExportOptions options) {
    if (walk.bytes == 0) {
      return;
    }
    if (!TensorTypes.hasAddresses(type)) {
      like.data(walk.buffer).byteOffset(walk.byteOffset);
      return;
    }
    if (!Sizes.fit(walk.buffer, walk.byteOffset + walk.bytes)) {
      throw FletchingException.invalid(
          "ArrowArray: offset or length out of range: expected elements within the address space;"
              + " hint: fix the producer");
    }
    long first = walk.buffer + walk.byteOffset;
    long byteOffset = options.isAligned ? first & (ALIGNMENT - 1) : 0;
    like.data(first - byteOffset).byteOffset(byteOffset);
  }
}
