// SPDX-License-Identifier: Apache-2.0
//
// The environment variable FLETCHING_VALIDATE.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>
#include <type_traits>

#include "hooks.hpp"
#include "record.hpp"

namespace fletching::validate {
namespace {

// --- The variable ---

struct Setting {
  bool is_read = false;
  bool is_on = false;
  bool aborts = false;
  std::int8_t level = 0;
};

Setting parse(std::string_view value) noexcept {
  static constexpr std::string_view kLevels[] = {"protocol", "shape", "data"};
  const std::size_t colon = value.find(':');
  const std::string_view mode = value.substr(0, colon);
  const std::string_view level =
      colon == std::string_view::npos ? kLevels[FLETCHING_VALIDATE_SHAPE] : value.substr(colon + 1);
  const auto* const found = std::ranges::find(kLevels, level);
  const bool is_known = (mode == "log" || mode == "abort") && found != std::end(kLevels);
  return {true, is_known, mode == "abort", static_cast<std::int8_t>(found - std::begin(kLevels))};
}

/// Reads the variable at the first call. An atomic, because a child of fork cannot wait for a
/// thread of its parent that initializes a static variable.
Setting setting() noexcept {
  static constinit std::atomic<Setting> kept;
  Setting known = kept;
  if (known.is_read) return known;
  const char* const value = std::getenv("FLETCHING_VALIDATE");
  const bool is_empty = value == nullptr || *value == '\0';
  const Setting parsed = is_empty ? Setting{.is_read = true} : parse(value);
  if (kept.compare_exchange_strong(known, parsed) && !is_empty && !parsed.is_on) {
    std::fprintf(stderr,
                 "fletching: FLETCHING_VALIDATE: unknown value: expected log or abort, alone or "
                 "with :protocol, :shape or :data, got %s; hint: set FLETCHING_VALIDATE=log\n",
                 value);
  }
  return parsed;
}

// --- Findings ---

const char* name_of(std::int32_t direction) noexcept {
  return direction == FLETCHING_HANDOVER_EXPORT ? "export" : "import";
}

void print(void* direction, const FletchingFinding* finding) noexcept {
  std::fprintf(stderr, "fletching: %s: %s: %s (%s, rule %s, %s)\n",
               static_cast<const char*>(direction), finding->path, finding->message,
               finding->severity, finding->rule, finding->party);
  if (setting().aborts && std::strcmp(finding->severity, "error") == 0) std::abort();
}

// --- Structs ---

bool is_wrapped(const void* private_data) noexcept {
  return Records::get().find<Record>(private_data) != nullptr;
}

/// Whether a struct is released or already wrapped.
template <class Raw>
bool is_done(const Raw& raw) noexcept {
  const auto& base = detail::base(raw);
  return base.release == nullptr || is_wrapped(base.private_data);
}
bool is_done(ArrowAsyncDeviceStreamHandler* const& handler) noexcept {
  return handler == nullptr || is_wrapped(handler->private_data);
}
bool is_done(DLManagedTensorVersioned* const& tensor) noexcept {
  return tensor == nullptr || is_wrapped(tensor->manager_ctx);
}
bool is_done(DLManagedTensor* const& tensor) noexcept {
  return tensor == nullptr || is_wrapped(tensor->manager_ctx);
}

template <class Raw>
using Wrap = int(Raw*, const FletchingValidateOptions*, FletchingMessage*);

template <class Raw>
int validate_untyped(Raw* array, const FletchingValidateOptions* options,
                     FletchingMessage* message) noexcept {
  if constexpr (std::is_same_v<Raw, ArrowArray>) {
    return FletchingValidateArray(nullptr, array, options, message);
  } else {
    return FletchingValidateDeviceArray(nullptr, array, options, message);
  }
}

int wrap(std::int32_t kind, void* address, const FletchingValidateOptions& options,
         FletchingMessage* message) noexcept {
  const auto with = [&]<class Raw>(Wrap<Raw>* function) {
    auto* const raw = static_cast<Raw*>(address);
    return is_done(*raw) ? 0 : function(raw, &options, message);
  };
  switch (kind) {
    case FLETCHING_HANDOVER_SCHEMA:
      return with(&FletchingValidateSchema);
    case FLETCHING_HANDOVER_ARRAY:
      return with(&validate_untyped<ArrowArray>);
    case FLETCHING_HANDOVER_DEVICE_ARRAY:
      return with(&validate_untyped<ArrowDeviceArray>);
    case FLETCHING_HANDOVER_STREAM:
      return with(&FletchingValidateStream);
    case FLETCHING_HANDOVER_DEVICE_STREAM:
      return with(&FletchingValidateDeviceStream);
    case FLETCHING_HANDOVER_HANDLER:
      return with(&FletchingValidateAsyncHandler);
    case FLETCHING_HANDOVER_TENSOR:
      return with(&FletchingValidateTensor);
    case FLETCHING_HANDOVER_LEGACY_TENSOR:
      return with(&FletchingValidateLegacyTensor);
    default:
      return failed(message, EINVAL, "kind: unknown: expected a FLETCHING_HANDOVER_ value");
  }
}

void hand_over(std::int32_t direction, std::int32_t kind, void* address) noexcept {
  if (!setting().is_on) return;
  const char* const name = name_of(direction);
  const FletchingValidateOptions options{sizeof options, setting().level, &print,
                                         const_cast<char*>(name), 0};
  FletchingMessage message;
  if (wrap(kind, address, options, &message) == 0) return;
  std::fprintf(stderr, "fletching: %s: not validated: %s\n", name, message.text);
}

}  // namespace
}  // namespace fletching::validate

extern "C" void FletchingValidateHandover(std::int32_t direction, std::int32_t kind,
                                          void* address) {
  fletching::validate::hand_over(direction, kind, address);
}
