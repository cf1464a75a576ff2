// SPDX-License-Identifier: Apache-2.0
//
// Hooks of schemas and batches, and helpers shared by the stream checkers.
#ifndef FLETCHING_SRC_VALIDATE_HOOKS_HPP
#define FLETCHING_SRC_VALIDATE_HOOKS_HPP

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "fletching/check_array.hpp"
#include "fletching/check_data.hpp"
#include "fletching/detail/message.hpp"
#include "fletching/detail/text.hpp"
#include "fletching/owner.hpp"
#include "fletching/sync_event.hpp"
#include "fletching/validate.h"
#include "record.hpp"
#include "rules.hpp"

namespace fletching::validate {

inline constexpr std::size_t kMostText = std::size_t{1} << 16U;  // longest checked error message
inline constexpr int kMostErrno = 4095;                          // the maximum on any platform

/// Whether a result is 0 or an errno value.
constexpr bool is_errno(int code) noexcept { return code >= 0 && code <= kMostErrno; }

inline std::string errno_message(int code) {
  return "result is not an errno value: expected 0 to " + std::to_string(kMostErrno) + ", got " +
         std::to_string(code);
}

template <class Base>
struct Tracked : Record {
  /// Releases a copy, because the callback may free the struct's memory.
  void release_inner() noexcept override {
    Base moved = inner;
    const auto run = [&] { moved.release(&moved); };
    if (log->has(FLETCHING_STRESS_THREAD)) {
      run_elsewhere(run);
    } else {
      run();
    }
    if (moved.release != nullptr) {
      report(Rule::release_marks_released, path,
             "release is not NULL after the callback: expected NULL");
    }
    Records::get().retire(*this);
  }

  Base inner{};  // the producer's release and private_data; after release all members
};

/// Marks a struct as released. With the stress option, poisons the other members.
template <class Base>
void mark_released(Base* self, const Log& log) noexcept {
  if (log.has(FLETCHING_STRESS_POISON)) std::memset(self, kPoison, sizeof *self);
  self->release = nullptr;
}

inline constexpr const char* kStoredAddress =
    "a struct was written to after it had been moved: expected no pointer to it";

/// Place from which a struct is moved to the consumer and to which the producer must not write
/// later. There are two: the last struct stays watched while the next one is filled.
template <class Raw, std::size_t kPlaces = 2>
struct Filled {
  /// Calls the producer. Passes on a consumer's NULL.
  template <class Fill>
  int fill(Record& record, const Path& path, Raw* out, const Fill& call) noexcept {
    if (out == nullptr || !record.log->has(FLETCHING_STRESS_MOVE)) return call(out);
    check(record, path);
    Place<Raw>& place = places[at];
    at = (at + 1) % kPlaces;
    place.raw = *out;
    const int code = call(&place.raw);
    *out = place.raw;
    place.leave();
    return code;
  }

  void check(Record& record, const Path& path) noexcept {
    for (Place<Raw>& place : places) {
      if (place.is_untouched()) continue;
      record.report(Rule::move_no_stored_address, path, kStoredAddress);
      place.leave();
    }
  }

  std::array<Place<Raw>, kPlaces> places;
  std::size_t at = 0;
};

template <class Base>
inline constexpr Rule kPrivateDataRule =
    std::is_same_v<Base, ArrowSchema> ? Rule::schema_private_data_untouched
                                      : Rule::array_private_data_untouched;

/// Returns the record of a struct. If private_data was changed, looks for the struct's address.
template <class Kind, class Raw>
std::shared_ptr<Kind> record_of(Raw* self, Rule private_data_rule) noexcept {
  auto record = Records::get().find<Kind>(self->private_data);
  if (record != nullptr) {
    record->self = self;
    return record;
  }
  record = Records::get().find_struct<Kind>(self);
  if (record != nullptr) {
    record->report(private_data_rule, record->path,
                   "private_data was changed: expected the value that was handed over");
  } else {
    std::fprintf(stderr,
                 "fletching: a call on a validated struct with an unknown private_data (rule %s)\n",
                 facts(private_data_rule).id);
  }
  return record;
}

/// Release callback for the consumer.
template <class Base>
void release_tracked(Base* self) noexcept {
  const auto record = record_of<Tracked<Base>>(self, kPrivateDataRule<Base>);
  if (record == nullptr) {
    self->release = nullptr;
    return;
  }
  if (record->released.exchange(true)) {
    self->release = nullptr;
    return record->report(Rule::release_once, record->path,
                          "release was called again: expected one call for all copies");
  }
  const auto release = record->inner.release;
  void* const private_data = record->inner.private_data;
  record->inner = *self;
  record->inner.release = release;
  record->inner.private_data = private_data;
  mark_released(self, *record->log);
  if (!record->log->delay(record)) record->release_inner();
}

/// Hooks the release of a schema or batch. If out of memory, it is not checked.
template <class Base>
void track(Base* base, const std::shared_ptr<Log>& log, const Rule& live_rule,
           const Path& path) noexcept {
  try {
    const auto record = std::make_shared<Tracked<Base>>();
    record->log = log;
    record->path = path;
    record->live_rule = &live_rule;
    record->self = base;
    record->inner = *base;
    Records::get().add(record);
    base->release = &release_tracked<Base>;
    base->private_data = record->key();
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

/// Restores the members that the producer had set.
template <class Base>
void untrack(Base* base) noexcept {
  if (base->release != &release_tracked<Base>) return;
  const auto record = Records::get().find<Tracked<Base>>(base->private_data);
  if (record == nullptr || record->released.exchange(true)) return;
  base->release = record->inner.release;
  base->private_data = record->inner.private_data;
  Records::get().retire(*record);
}

inline RuleFacts facts_of(std::string_view id) noexcept {
  for (const RuleFacts& entry : kRules) {
    if (entry.id == id) return entry;
  }
  // A limit of the checks breaks no rule. `id` is a literal:
  return {id.data(), "note", "both", ""};  // NOLINT(bugprone-suspicious-stringview-data-usage)
}

/// Whether the validator may read an array's buffers. Waits for its event on the host.
inline Result<bool> may_read_data(const ArrowArray& /*array*/) noexcept { return true; }
inline Result<bool> may_read_data(const ArrowDeviceArray& array) noexcept {
  if (!is_host_readable(array.device_type) || array.array.release == nullptr) return false;
  const Status waited = SyncEvent(array).synchronize();
  if (!waited) return waited.error();
  return true;
}

template <class Raw>
Result<ArrayFindings> check_at_level(const ArrowSchema& schema, const Raw& array,
                                     std::int32_t level) noexcept {
  if (level < FLETCHING_VALIDATE_DATA) return check_array(schema, array);
  const Result<bool> may_read = may_read_data(array);
  if (may_read.ok() && *may_read) return check_data(schema, array);
  Result<ArrayFindings> found = check_array(schema, array);
  if (!found || may_read.ok()) return found;
  return detail::guarded([&]() -> Result<ArrayFindings> {
    found->list.push_back({"limit.event", "array.sync_event", may_read.error().message()});
    return std::move(found);
  });
}

struct ArrayReport {
  std::int64_t findings = 0;
  bool is_other_type = false;  // a type other than the schema's
};

/// Whether the rule compares an array's type with its schema's.
inline bool compares_types(std::string_view rule) noexcept {
  static constexpr Rule kRulesOfTypes[] = {
      Rule::array_n_buffers_of_type, Rule::array_n_children_of_type,
      Rule::array_dictionary_when_encoded, Rule::array_dictionary_null_otherwise};
  return std::ranges::any_of(kRulesOfTypes,
                             [=](Rule of_type) { return rule == facts(of_type).id; });
}

template <class Raw>
Result<ArrayReport> report_array(const ArrowSchema& schema, const Raw& array, const Path& prefix,
                                 Log& log) noexcept {
  const Result<ArrayFindings> found = check_at_level(schema, array, log.level());
  if (!found) return found.error();
  ArrayReport report;
  for (const ArrayFinding& finding : found->list) {
    log.report(facts_of(finding.rule), nullptr,
               text_or_empty([&] { return prefix.text() + finding.path; }).c_str(),
               finding.message.c_str());
    ++report.findings;
    report.is_other_type = report.is_other_type || compares_types(finding.rule);
  }
  return report;
}

inline bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = detail::utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

inline int failed(FletchingMessage* message, int code, std::string_view text) noexcept {
  detail::write_message(message, text);
  return code;
}

/// Accepts options of this version or an earlier one.
inline FletchingValidateOptions options_or_default(
    const FletchingValidateOptions* options) noexcept {
  FletchingValidateOptions chosen{};
  if (options != nullptr) std::memcpy(&chosen, options, options->size);
  return chosen;
}

inline const char* check_options(const FletchingValidateOptions* options) noexcept {
  constexpr std::size_t kFirstVersion = offsetof(FletchingValidateOptions, stress);
  constexpr std::uint32_t kKnownStress = 2 * FLETCHING_STRESS_REPORT_AT_EXIT - 1;
  if (options == nullptr) return nullptr;
  if (options->size != sizeof *options && options->size != kFirstVersion) {
    return "options.size: unknown: expected the size of FletchingValidateOptions";
  }
  const FletchingValidateOptions chosen = options_or_default(options);
  const bool known =
      chosen.level >= FLETCHING_VALIDATE_PROTOCOL && chosen.level <= FLETCHING_VALIDATE_DATA;
  if (!known) return "options.level: unknown: expected a FLETCHING_VALIDATE_ value";
  return (chosen.stress & ~kKnownStress) == 0
             ? nullptr
             : "options.stress: unknown bit: expected FLETCHING_STRESS_ values";
}

/// Calls `wrap` with a new log. Returns a code for a C function: EINVAL if the options are invalid,
/// or ENOMEM with the message `no_memory` if `wrap` throws.
template <class Wrap>
int with_log(const FletchingValidateOptions* options, FletchingMessage* message,
             std::string_view no_memory, const Wrap& wrap) noexcept {
  if (const char* problem = check_options(options)) return failed(message, EINVAL, problem);
  try {
    const auto log = std::make_shared<Log>(options_or_default(options));
    if (log->has(FLETCHING_STRESS_REPORT_AT_EXIT)) report_at_exit();
    wrap(log);
  } catch (...) {
    return failed(message, ENOMEM, no_memory);
  }
  return failed(message, 0, "");
}

}  // namespace fletching::validate

#endif  // FLETCHING_SRC_VALIDATE_HOOKS_HPP
