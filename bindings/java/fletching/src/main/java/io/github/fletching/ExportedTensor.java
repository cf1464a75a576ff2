// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DlpackConstants;
import java.nio.ByteBuffer;
import java.util.Deque;

/** An exported tensor in one C allocation: the struct, followed by its shape and strides. */
final class ExportedTensor extends Exported {
  private final Object object; // user object or array; null for none
  final ByteBuffer kept; // reachable until the release

  private ExportedTensor(Object object, ByteBuffer kept) {
    this.object = object;
    this.kept = kept;
  }

  /**
   * Allocates a tensor. The caller passes its address on.
   *
   * @throws FletchingException ENOMEM, with the operation; the caller then still owns the object
   */
  static long make(Kind kind, TensorBuilder like, long flags, Object object, String operation) {
    long extents = (kind.tensorSize + 7) & ~7L;
    ExportedTensor exported = new ExportedTensor(object, like.kept());
    long tensor = C.allocate(extents + 16L * like.ndim());
    if (tensor == 0) {
      exported.forget();
      throw FletchingException.noMemory(operation);
    }
    try {
      exported.adopt(kind, tensor);
    } catch (Throwable noFunction) {
      C.free(tensor);
      throw noFunction;
    }
    if (kind == Kind.TENSOR) {
      long version = tensor + Fields.MANAGED_TENSOR_VERSIONED_VERSION;
      C.putInt(version + Fields.VERSION_MAJOR, (int) DlpackConstants.DLPACK_MAJOR_VERSION);
      C.putInt(version + Fields.VERSION_MINOR, (int) DlpackConstants.DLPACK_MINOR_VERSION);
      C.putLong(tensor + Fields.MANAGED_TENSOR_VERSIONED_FLAGS, flags);
    }
    like.write(tensor + kind.tensor, tensor + extents);
    return tensor;
  }

  @Override
  void release(Kind kind, long tensor, Deque<Object> ended) {
    forget();
    if (object != null) {
      ended.add(object);
    }
    C.free(tensor);
  }
}
