// SPDX-License-Identifier: Apache-2.0
//
// Checker of DLPack tensors.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "fletching/dlpack.h"
#include "fletching/dlpack_types.hpp"
#include "fletching/tables.hpp"
#include "hooks.hpp"
#include "record.hpp"

namespace fletching::validate {
namespace {

constexpr Rule kDeleterCalled = Rule::dlpack_managed_deleter_called;
constexpr std::int32_t kMostDimensions = 64;  // as in NumPy and PyTorch

template <class Managed>
struct Tensor : Record {
  Managed* inner = nullptr;
  Managed outer{};  // for the consumer
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

/// Poisons the tensor except the members that find the record and report a second call.
template <class Managed>
void poison(Tensor<Managed>& tensor) noexcept {
  const Managed before = tensor.outer;
  std::memset(static_cast<void*>(&tensor.outer), kPoison, sizeof tensor.outer);
  tensor.outer.manager_ctx = before.manager_ctx;
  tensor.outer.deleter = before.deleter;
  for (auto* const sizes : {&tensor.shape, &tensor.strides}) {
    std::memset(sizes->data(), kPoison, sizes->size() * sizeof(std::int64_t));
  }
}

template <class Managed>
void delete_tensor(Managed* self) noexcept {
  const auto record = Records::get().find<Tensor<Managed>>(self->manager_ctx);
  if (record == nullptr) {
    std::fprintf(stderr,
                 "fletching: a deleter on a validated tensor with an unknown manager_ctx\n");
    return;
  }
  if (record->released.exchange(true)) {
    return record->report(kDeleterCalled, record->path,
                          "the deleter was called again: expected one call");
  }
  Managed* const inner = record->inner;
  const auto run = [=] {
    if (inner->deleter != nullptr) inner->deleter(inner);
  };
  if (record->log->has(FLETCHING_STRESS_POISON)) poison(*record);
  if (record->log->has(FLETCHING_STRESS_THREAD)) {
    run_elsewhere(run);
  } else {
    run();
  }
  Records::get().retire(*record);
}

// --- Members ---

bool is_known(const DLDataType& type) noexcept { return find_data_type_code(type.code) != nullptr; }

void check_type(Record& record, const DLDataType& type) noexcept {
  const Path path{"tensor.dtype"};
  const auto expect_bits = [&](Rule rule, unsigned bits, const char* message) {
    if (type.bits != bits) record.report(rule, path, message);
  };
  if (!is_known(type)) {
    record.report(Rule::dlpack_type_code_known, path,
                  "code is unknown: expected one of DLDataTypeCode");
  }
  if (type.code == kDLFloat6_e2m3fn || type.code == kDLFloat6_e3m2fn) {
    expect_bits(Rule::dlpack_type_fp6_bits, 6, "bits of a 6-bit float: expected 6");
  }
  if (type.code == kDLFloat4_e2m1fn) {
    expect_bits(Rule::dlpack_type_fp4_bits, 4, "bits of a 4-bit float: expected 4");
  }
}

bool is_empty(const DLTensor& tensor) noexcept {
  for (std::int32_t i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] == 0) return true;
  }
  return false;
}

void check_tensor(Record& record, const DLTensor& tensor) noexcept {
  if (is_empty(tensor) && tensor.data != nullptr) {
    record.report(Rule::dlpack_data_null_when_empty, {"tensor.data"},
                  "is set on a tensor without elements: expected NULL");
  }
  const auto device = static_cast<ArrowDeviceType>(tensor.device.device_type);
  if (detail::is_host_readable(device) && tensor.device.device_id != 0) {
    record.report(Rule::dlpack_device_id_of_cpu, {"tensor.device"},
                  "device_id of memory that the host reads: expected 0");
  }
  check_type(record, tensor.dtype);
}

void check_members(Record& record, const DLManagedTensor& managed) noexcept {
  check_tensor(record, managed.dl_tensor);
}

void check_members(Record& record, const DLManagedTensorVersioned& managed) noexcept {
  constexpr std::uint32_t kStridesAreSet = 2;  // minor version
  constexpr std::uint64_t kKnown = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED |
                                   DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  const DLTensor& tensor = managed.dl_tensor;
  if (managed.version.minor >= kStridesAreSet && tensor.ndim > 0 && tensor.strides == nullptr) {
    record.report(Rule::dlpack_strides_not_null, {"tensor.strides"},
                  "is NULL: expected a stride for each dimension from version 1.2 on");
  }
  if (managed.version.minor <= DLPACK_MINOR_VERSION && (managed.flags & ~kKnown) != 0) {
    record.report(Rule::dlpack_managed_flags_zero_by_default, {"tensor.flags"},
                  "has unknown bits: expected those of version 1.3");
  }
  check_tensor(record, tensor);
}

// --- The C functions ---

bool is_readable(const DLManagedTensor& /*tensor*/) noexcept { return true; }
bool is_readable(const DLManagedTensorVersioned& tensor) noexcept {
  return tensor.version.major == DLPACK_MAJOR_VERSION;
}

template <class Managed>
void copy_sizes(const DLTensor& from, Tensor<Managed>& record) {
  DLTensor& to = record.outer.dl_tensor;
  if (from.shape != nullptr) record.shape.assign(from.shape, from.shape + from.ndim);
  if (from.strides != nullptr) record.strides.assign(from.strides, from.strides + from.ndim);
  if (from.shape != nullptr) to.shape = record.shape.data();
  if (from.strides != nullptr) to.strides = record.strides.data();
}

template <class Managed>
int wrap(Managed** tensor, const FletchingValidateOptions* options,
         FletchingMessage* message) noexcept {
  if (tensor == nullptr || *tensor == nullptr) {
    return failed(message, EINVAL, "tensor: expected a tensor, got NULL");
  }
  if (!is_readable(**tensor)) {
    return failed(message, ENOTSUP, "tensor.version: expected major version 1");
  }
  const DLTensor& inner = (*tensor)->dl_tensor;
  if (inner.ndim < 0 || inner.ndim > kMostDimensions ||
      (inner.ndim > 0 && inner.shape == nullptr)) {
    return failed(message, EINVAL,
                  "tensor: ndim is out of range or shape NULL: expected 0 to 64 sizes");
  }
  return with_log(options, message, "no memory to validate the tensor", [&](const auto& log) {
    const auto record = std::make_shared<Tensor<Managed>>();
    record->log = log;
    record->path = {"tensor"};
    record->live_rule = &kDeleterCalled;
    record->inner = *tensor;
    record->outer = **tensor;
    copy_sizes(inner, *record);
    record->outer.manager_ctx = record->key();
    record->outer.deleter = &delete_tensor<Managed>;
    Records::get().add(record);
    if (log->level() >= FLETCHING_VALIDATE_SHAPE) check_members(*record, **tensor);
    *tensor = &record->outer;
  });
}

}  // namespace
}  // namespace fletching::validate

extern "C" {

int FletchingValidateTensor(DLManagedTensorVersioned** tensor,
                            const FletchingValidateOptions* options, FletchingMessage* message) {
  return fletching::validate::wrap(tensor, options, message);
}

int FletchingValidateLegacyTensor(DLManagedTensor** tensor, const FletchingValidateOptions* options,
                                  FletchingMessage* message) {
  return fletching::validate::wrap(tensor, options, message);
}
}
