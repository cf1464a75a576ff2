// SPDX-License-Identifier: Apache-2.0
//
// Checker of schemas and arrays that are passed without a stream.
#include <cerrno>

#include "hooks.hpp"
#include "members.hpp"
#include "record.hpp"

namespace fletching::validate {
namespace {

constexpr Rule kReleasedOnce = Rule::release_once;

void check_device(Log& /*log*/, const ArrowArray& /*array*/) noexcept {}
void check_device(Log& log, const ArrowDeviceArray& array) noexcept {
  check_members(log, array, {"array"});
}

void check_content(Log& log, const ArrowSchema* /*type*/, const ArrowSchema& schema) noexcept {
  check_members(log, schema, {"schema"});
}
template <class Raw>
void check_content(Log& log, const ArrowSchema* type, const Raw& array) noexcept {
  check_device(log, array);
  // The comparison is skipped if out of memory.
  if (type != nullptr && log.level() >= FLETCHING_VALIDATE_SHAPE) {
    (void)report_array(*type, array, {}, log);
  }
}

template <class Raw>
int wrap(const ArrowSchema* type, Raw* raw, const char* name,
         const FletchingValidateOptions* options, FletchingMessage* message) noexcept {
  if (raw == nullptr || detail::base(*raw).release == nullptr) {
    return failed(message, EINVAL, "expected a live schema or array");
  }
  return with_log(options, message, "no memory to validate the struct", [&](const auto& log) {
    log->end();  // no later call would run delayed releases
    check_content(*log, type, *raw);
    track(&detail::base(*raw), log, kReleasedOnce, {name});
  });
}

}  // namespace
}  // namespace fletching::validate

extern "C" {

int FletchingValidateSchema(ArrowSchema* schema, const FletchingValidateOptions* options,
                            FletchingMessage* message) {
  return fletching::validate::wrap(nullptr, schema, "schema", options, message);
}

int FletchingValidateArray(const ArrowSchema* schema, ArrowArray* array,
                           const FletchingValidateOptions* options, FletchingMessage* message) {
  return fletching::validate::wrap(schema, array, "array", options, message);
}

int FletchingValidateDeviceArray(const ArrowSchema* schema, ArrowDeviceArray* array,
                                 const FletchingValidateOptions* options,
                                 FletchingMessage* message) {
  return fletching::validate::wrap(schema, array, "array", options, message);
}
}
