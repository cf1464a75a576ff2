// SPDX-License-Identifier: Apache-2.0
//
// The validation layer for owners of streams. Link libfletching: only it has the layer.
#ifndef FLETCHING_VALIDATE_HPP
#define FLETCHING_VALIDATE_HPP

#include <concepts>
#include <cstdint>
#include <utility>

#include "fletching/abi.h"
#include "fletching/detail/core.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/validate.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// How to validate.
struct ValidateOptions {
  std::int32_t level = FLETCHING_VALIDATE_PROTOCOL;
  std::uint32_t stress = 0;  ///< FLETCHING_STRESS_...
};

namespace detail {

template <class Raw, class Report, class Wrap>
Result<Owner<Raw>> validate(Owner<Raw> stream, Report& report, const ValidateOptions& options,
                            Wrap wrap) noexcept {
  const auto call = [](void* context, const FletchingFinding* finding) noexcept {
    (*static_cast<Report*>(context))(*finding);
  };
  void* const context = const_cast<void*>(static_cast<const void*>(&report));
  const FletchingValidateOptions raw{sizeof raw, options.level, call, context, options.stress};
  return guarded([&]() -> Result<Owner<Raw>> {
    const Status wrapped = in_core(wrap, stream.get(), &raw);
    if (!wrapped) return wrapped.error();
    return std::move(stream);
  });
}

}  // namespace detail

/// Returns a stream that validates every call, and passes each finding to `report`.
///
/// `report` must not throw, and must outlive the stream, its schemas and its batches; two threads
/// may call it at once. An error releases the stream: EINVAL for an empty stream and an unknown
/// level or stress; ENOMEM.
template <class Report>
  requires std::invocable<Report&, const FletchingFinding&>
Result<ArrayStream> validate(ArrayStream stream, Report& report,
                             const ValidateOptions& options = {}) noexcept {
  return detail::validate(std::move(stream), report, options, &FletchingValidateStream);
}
template <class Report>
  requires std::invocable<Report&, const FletchingFinding&>
Result<DeviceArrayStream> validate(DeviceArrayStream stream, Report& report,
                                   const ValidateOptions& options = {}) noexcept {
  return detail::validate(std::move(stream), report, options, &FletchingValidateDeviceStream);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_VALIDATE_HPP
