// SPDX-License-Identifier: Apache-2.0
//
// The rules of DLPack's structs. Rules for both structs are violated in the versioned struct.
#include <cerrno>
#include <cstdint>

#include "breaks.hpp"

namespace fletching::conformance {
namespace {

using Tensor = DLManagedTensorVersioned;

/// A subject that applies `Plant`, a lambda without captures, to its tensors to add a fault.
template <class Plant>
FletchingSubject tensors_with(Plant /*plant*/) {
  FletchingSubject subject = good();
  subject.tensor = [](void* context, Tensor* in, Tensor** out, FletchingMessage* message) {
    const int code = good().tensor(context, in, out, message);
    if (code == 0) Plant()(**out);
    return code;
  };
  return subject;
}

/// A subject that runs `Plant` before it imports a tensor. A nonzero code rejects the tensor.
template <class Plant>
FletchingSubject takes_tensors_with(Plant /*plant*/) {
  FletchingSubject subject = good();
  subject.tensor = [](void* context, Tensor* in, Tensor** out, FletchingMessage* message) {
    const int code = Plant()(*in);
    if (code == 0) return good().tensor(context, in, out, message);
    if (in->deleter != nullptr) in->deleter(in);
    return code;
  };
  return subject;
}

// --- Producer rules ---

TEST(Tensors, DlpackDataNullWhenEmpty) {
  finds(tensors_with([](Tensor& out) { out.dl_tensor.data = &out; }), "tensor.empty");
}

TEST(Tensors, DlpackStridesNotNull) {
  finds(tensors_with([](Tensor& out) { out.dl_tensor.strides = nullptr; }), "tensor.good");
}

TEST(Tensors, DlpackDeviceIdOfCpu) {
  finds(tensors_with([](Tensor& out) { out.dl_tensor.device.device_id = -1; }), "tensor.good");
}

TEST(Tensors, DlpackTypeCodeKnown) {
  finds(tensors_with([](Tensor& out) { out.dl_tensor.dtype.code = 255; }), "tensor.good");
}

TEST(Tensors, DlpackManagedFlagsZeroByDefault) {
  finds(tensors_with([](Tensor& out) { out.flags = std::uint64_t{1} << 63U; }), "tensor.good");
}

TEST(Tensors, DlpackManagedVersionedPreferred) {
  finds(tensors_with([](Tensor& out) { out.version = {0, 8}; }), "tensor.good",
        "expected a tensor of version 1");
}

TEST(Tensors, DlpackManagedDeleterFreesSelf) {
  finds(tensors_with([](Tensor& out) { out.deleter = [](Tensor*) {}; }), "tensor.good",
        "not released: 1 structs");
}

// --- Consumer rules ---

TEST(Tensors, DlpackByteOffsetApplied) {
  finds(takes_tensors_with([](Tensor& in) {
          in.dl_tensor.byte_offset = 0;
          return 0;
        }),
        "tensor.offset", "expected the values 1, 2, 3");
}

TEST(Tensors, DlpackAlignmentNotReliedOn) {
  finds(takes_tensors_with([](Tensor& in) {
          return reinterpret_cast<std::uintptr_t>(in.dl_tensor.data) % 256 != 0 ? EINVAL : 0;
        }),
        "tensor.good", "expected success, got errno 22");
}

TEST(Tensors, DlpackStridesNullAccepted) {
  finds(takes_tensors_with([](Tensor& in) {
          return in.dl_tensor.ndim != 0 && in.dl_tensor.strides == nullptr ? EINVAL : 0;
        }),
        "tensor.strides-null", "expected success, got errno 22");
}

TEST(Tensors, DlpackShapeNullAccepted) {
  finds(takes_tensors_with([](Tensor& in) { return in.dl_tensor.shape == nullptr ? EINVAL : 0; }),
        "tensor.scalar", "expected success, got errno 22");
}

TEST(Tensors, DlpackDeviceIdNotAssumed) {
  finds(takes_tensors_with(
            [](Tensor& in) { return in.dl_tensor.device.device_id == 0 ? 0 : EINVAL; }),
        "tensor.device-id-negative", "expected success, got errno 22");
}

TEST(Tensors, DlpackTypeUnexpectedBitsRefused) {
  finds(takes_tensors_with([](Tensor& in) {
          if (in.dl_tensor.dtype.bits == 4) in.dl_tensor.dtype.bits = 8;
          return 0;
        }),
        "tensor.bits-sub-byte", "expected an error, got success");
}

TEST(Tensors, DlpackManagedMajorMismatch) {
  finds(takes_tensors_with([](Tensor& in) {
          in.version.major = 1;
          return 0;
        }),
        "tensor.major-max", "expected an error, got success");
}

TEST(Tensors, DlpackManagedMinorMismatch) {
  finds(takes_tensors_with([](Tensor& in) { return in.version.minor > 3 ? EINVAL : 0; }),
        "tensor.minor-newer", "expected success, got errno 22");
}

TEST(Tensors, DlpackManagedDeleterCalled) {
  finds(takes_tensors_with([](Tensor& in) {
          in.deleter = nullptr;
          return 0;
        }),
        "tensor.good", "not released: 1 structs");
}

TEST(Tensors, DlpackManagedDeleterNullAccepted) {
  finds(takes_tensors_with([](Tensor& in) { return in.deleter == nullptr ? EINVAL : 0; }),
        "tensor.deleter-null", "expected success, got errno 22");
}

TEST(Tensors, DlpackManagedReadOnlyIgnored) {
  finds(takes_tensors_with([](Tensor& in) {
          return (in.flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0 ? EINVAL : 0;
        }),
        "tensor.flags-known", "expected success, got errno 22");
}

}  // namespace
}  // namespace fletching::conformance
