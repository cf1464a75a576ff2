// SPDX-License-Identifier: Apache-2.0
//
// The validation layer for owners of schemas, arrays, streams and tensors. Requires linking
// libfletching.
#ifndef FLETCHING_VALIDATE_HPP
#define FLETCHING_VALIDATE_HPP

#include <concepts>
#include <cstdint>
#include <utility>

#include "fletching/abi.h"
#include "fletching/detail/core.hpp"
#include "fletching/dlpack_tensor.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/validate.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// Options of the validation layer.
struct ValidateOptions {
  std::int32_t level = FLETCHING_VALIDATE_PROTOCOL;
  std::uint32_t stress = 0;  ///< FLETCHING_STRESS_...
};

namespace detail {

/// Calls a function of the layer with options and a message.
template <class Report, class Wrap>
Status validate(Report& report, const ValidateOptions& options, const Wrap& wrap) noexcept {
  const auto call = [](void* context, const FletchingFinding* finding) noexcept {
    (*static_cast<Report*>(context))(*finding);
  };
  void* const context = const_cast<void*>(static_cast<const void*>(&report));
  const FletchingValidateOptions raw{sizeof raw, options.level, call, context, options.stress};
  return in_operation("validate", [&] { return in_core(wrap, &raw); });
}

template <class Owned, class Report, class Wrap>
Result<Owned> validated(Owned owned, Report& report, const ValidateOptions& options,
                        const Wrap& wrap) noexcept {
  const Status wrapped = validate(report, options, [&](const auto* raw, FletchingMessage* message) {
    return wrap(owned.get(), raw, message);
  });
  if (!wrapped) return wrapped.error();
  return owned;
}

template <class Managed, class Report, class Wrap>
Result<TensorOwner<Managed>> validated_tensor(TensorOwner<Managed> tensor, Report& report,
                                              const ValidateOptions& options,
                                              const Wrap& wrap) noexcept {
  Managed* raw = tensor.detach();
  const Status wrapped = validate(
      report, options,
      [&](const auto* given, FletchingMessage* message) { return wrap(&raw, given, message); });
  tensor = TensorOwner<Managed>(raw);
  if (!wrapped) return wrapped.error();
  return tensor;
}

}  // namespace detail

/// A function that receives findings.
template <class Report>
concept FindingReport = std::invocable<Report&, const FletchingFinding&>;

/// Returns an owner that validates every call on its struct, and passes each finding to `report`.
///
/// `report` must not throw. It must outlive the owner, and the schemas and batches of a stream. Two
/// threads may call it at once. Errors: EINVAL for an empty owner and an unknown level or stress;
/// ENOMEM. On error the struct is released.
Result<ArrayStream> validate(ArrayStream stream, FindingReport auto& report,
                             const ValidateOptions& options = {}) noexcept {
  return detail::validated(std::move(stream), report, options, &FletchingValidateStream);
}
Result<DeviceArrayStream> validate(DeviceArrayStream stream, FindingReport auto& report,
                                   const ValidateOptions& options = {}) noexcept {
  return detail::validated(std::move(stream), report, options, &FletchingValidateDeviceStream);
}
Result<Schema> validate(Schema schema, FindingReport auto& report,
                        const ValidateOptions& options = {}) noexcept {
  return detail::validated(std::move(schema), report, options, &FletchingValidateSchema);
}

/// Overload for an array. A level above PROTOCOL compares it with the schema first.
Result<Array> validate(Array array, const ArrowSchema& schema, FindingReport auto& report,
                       const ValidateOptions& options = {}) noexcept {
  const auto wrap = [&](ArrowArray* raw, const auto* given, FletchingMessage* message) {
    return FletchingValidateArray(&schema, raw, given, message);
  };
  return detail::validated(std::move(array), report, options, wrap);
}
Result<DeviceArray> validate(DeviceArray array, const ArrowSchema& schema,
                             FindingReport auto& report,
                             const ValidateOptions& options = {}) noexcept {
  const auto wrap = [&](ArrowDeviceArray* raw, const auto* given, FletchingMessage* message) {
    return FletchingValidateDeviceArray(&schema, raw, given, message);
  };
  return detail::validated(std::move(array), report, options, wrap);
}

/// Overload for a tensor. ENOTSUP also for another major version.
Result<DlpackTensor> validate(DlpackTensor tensor, FindingReport auto& report,
                              const ValidateOptions& options = {}) noexcept {
  return detail::validated_tensor(std::move(tensor), report, options, &FletchingValidateTensor);
}
Result<LegacyDlpackTensor> validate(LegacyDlpackTensor tensor, FindingReport auto& report,
                                    const ValidateOptions& options = {}) noexcept {
  return detail::validated_tensor(std::move(tensor), report, options,
                                  &FletchingValidateLegacyTensor);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_VALIDATE_HPP
