// SPDX-License-Identifier: Apache-2.0
//
// Which rule of the stream interfaces is checked where.
#ifndef FLETCHING_SRC_VALIDATE_PLACES_HPP
#define FLETCHING_SRC_VALIDATE_PLACES_HPP

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "rules.hpp"

namespace fletching::validate {

/// The rules that the stream checker reports, for one kind of stream.
struct StreamRules {
  Rule callbacks_set;
  Rule get_schema_after_release;
  Rule get_next_after_release;
  Rule get_last_error_after_release;
  Rule get_last_error_only_after_error;
  Rule errno_codes;
  Rule error_text;
  Rule error_text_lifetime;  // with a stress option
  Rule calls_serialized;
  Rule private_data_untouched;
  Rule release_like_array;
  Rule schema_constant;
  Rule end_is_released_array;
  Rule released_independently;
};

#define FLETCHING_STREAM_RULES(prefix)              \
  {Rule::prefix##_callbacks_set,                    \
   Rule::prefix##_get_schema_not_after_release,     \
   Rule::prefix##_get_next_not_after_release,       \
   Rule::prefix##_get_last_error_not_after_release, \
   Rule::prefix##_get_last_error_only_after_error,  \
   Rule::prefix##_errno_codes,                      \
   Rule::prefix##_error_text,                       \
   Rule::prefix##_error_text_lifetime,              \
   Rule::prefix##_calls_serialized,                 \
   Rule::prefix##_private_data_untouched,           \
   Rule::prefix##_release_like_array,               \
   Rule::prefix##_result_schema_constant,           \
   Rule::prefix##_result_end_is_released_array,     \
   Rule::prefix##_result_released_independently}

inline constexpr StreamRules kStreamRules = FLETCHING_STREAM_RULES(stream);
inline constexpr StreamRules kDeviceStreamRules = FLETCHING_STREAM_RULES(device_stream);
#undef FLETCHING_STREAM_RULES

/// The checks of the device stream alone.
inline constexpr Rule kDeviceRules[] = {Rule::device_stream_device_type_set,
                                        Rule::device_stream_one_device_type};

/// The checks of async streams.
inline constexpr Rule kAsyncRules[] = {Rule::async_handlers_serialized,
                                       Rule::async_error_ends_stream,
                                       Rule::async_handler_failure_ends_stream,
                                       Rule::async_schema_set,
                                       Rule::async_schema_first_and_once,
                                       Rule::async_schema_returns_errno,
                                       Rule::async_schema_only_release_after_failure,
                                       Rule::async_schema_moved_or_released,
                                       Rule::async_schema_released_independently,
                                       Rule::async_schema_pointer_not_kept,
                                       Rule::async_next_set,
                                       Rule::async_next_same_schema,
                                       Rule::async_next_not_concurrent,
                                       Rule::async_next_returns_errno,
                                       Rule::async_next_only_release_after_failure,
                                       Rule::async_next_null_task_is_end,
                                       Rule::async_next_task_copied,
                                       Rule::async_next_task_lives_during_call,
                                       Rule::async_next_metadata_encoding,
                                       Rule::async_error_set,
                                       Rule::async_error_then_release_only,
                                       Rule::async_error_errno_codes,
                                       Rule::async_error_texts_live_during_call,
                                       Rule::async_error_metadata_encoding,
                                       Rule::async_error_calls_no_producer,
                                       Rule::async_release_set,
                                       Rule::async_release_always_called,
                                       Rule::async_release_last,
                                       Rule::async_release_calls_no_producer,
                                       Rule::async_release_like_array,
                                       Rule::async_handler_ready_when_passed,
                                       Rule::async_handler_producer_set_first,
                                       Rule::async_handler_producer_not_before_schema,
                                       Rule::async_handler_private_data_untouched,
                                       Rule::async_task_extract_set,
                                       Rule::async_task_extracted_once,
                                       Rule::async_task_null_accepted,
                                       Rule::async_task_failure_then_on_error,
                                       Rule::async_task_returns_errno,
                                       Rule::async_task_array_released_separately,
                                       Rule::async_task_private_data_untouched,
                                       Rule::async_request_set,
                                       Rule::async_request_not_synchronous,
                                       Rule::async_request_scheduled,
                                       Rule::async_request_not_exceeded,
                                       Rule::async_request_positive,
                                       Rule::async_request_refused_when_not_positive,
                                       Rule::async_request_nothing_after_cancel,
                                       Rule::async_cancel_set,
                                       Rule::async_cancel_stops,
                                       Rule::async_cancel_idempotent,
                                       Rule::async_cancel_calls_no_handler,
                                       Rule::async_cancel_no_on_error,
                                       Rule::async_producer_device_type_set,
                                       Rule::async_producer_one_device_type,
                                       Rule::async_producer_metadata_encoding,
                                       Rule::async_producer_private_data_untouched,
                                       Rule::async_producer_outlives_handler};

/// The rules of structs that the hooks of schemas and batches report.
inline constexpr Rule kHookRules[] = {Rule::schema_release_set, Rule::schema_private_data_untouched,
                                      Rule::array_private_data_untouched, Rule::release_once,
                                      Rule::release_marks_released};

/// The rules that check_array reports, at level SHAPE.
inline constexpr Rule kShapeRules[] = {Rule::format_known,
                                       Rule::format_map_child,
                                       Rule::format_run_end_children,
                                       Rule::format_dictionary_index_type,
                                       Rule::schema_format_set,
                                       Rule::schema_n_children_set,
                                       Rule::schema_children_count,
                                       Rule::schema_children_null_only_when_none,
                                       Rule::array_length_set,
                                       Rule::array_null_count_range,
                                       Rule::array_null_count_correct,
                                       Rule::array_offset_not_negative,
                                       Rule::array_n_buffers_of_type,
                                       Rule::array_view_sizes_buffer,
                                       Rule::array_buffers_count,
                                       Rule::array_buffers_large_enough,
                                       Rule::array_buffers_null_only_when,
                                       Rule::array_n_children_of_type,
                                       Rule::array_children_count,
                                       Rule::array_children_null_only_when_none,
                                       Rule::array_dictionary_when_encoded,
                                       Rule::array_dictionary_null_otherwise,
                                       Rule::array_release_set};

/// The rules that check_data reports as well, at level DATA.
inline constexpr Rule kDataRules[] = {Rule::layout_offsets_monotone,
                                      Rule::layout_offsets_in_range,
                                      Rule::layout_list_view_in_range,
                                      Rule::layout_utf8,
                                      Rule::layout_view_length,
                                      Rule::layout_view_padding,
                                      Rule::layout_view_in_range,
                                      Rule::layout_view_prefix,
                                      Rule::layout_run_ends_ascending,
                                      Rule::layout_run_ends_cover,
                                      Rule::layout_union_type_ids,
                                      Rule::layout_union_offsets_in_range,
                                      Rule::layout_union_offsets_ascending,
                                      Rule::layout_dictionary_indices_in_range};

enum class Kind { not_observable, stress };

/// A rule that no checker reports.
struct Unchecked {
  Rule rule;
  Kind kind;
  const char* reason;
};

inline constexpr const char* kLaterRead = "a read of memory is no call";
inline constexpr const char* kSeparateText = "shown by a text that is freed at the next call";
inline constexpr const char* kConsumerBranch = "what a consumer makes of the array is no call";

inline constexpr const char* kFreedCopy =
    "shown by a copy of the text that is freed after the call";

inline constexpr Unchecked kUnchecked[] = {
    {Rule::async_next_metadata_copied, Kind::stress, kFreedCopy},
    {Rule::async_error_texts_copied, Kind::stress, kFreedCopy},
    {Rule::async_request_adds_up, Kind::not_observable,
     "a producer may wait for its data: fewer tasks than were requested are no fault yet"},
    {Rule::async_producer_metadata_lives, Kind::stress,
     "shown by a read of the metadata in every call; without a memory checker it may crash"},
    {Rule::async_producer_freed_by_producer, Kind::not_observable, "to free memory is no call"},
    {Rule::stream_error_text_lifetime, Kind::stress, kSeparateText},
    {Rule::stream_error_text_copied, Kind::stress, kSeparateText},
    {Rule::stream_result_end_checked, Kind::not_observable, kConsumerBranch},
    {Rule::stream_result_outlives_stream, Kind::not_observable, kLaterRead},
    {Rule::device_stream_error_text_lifetime, Kind::stress, kSeparateText},
    {Rule::device_stream_error_text_copied, Kind::stress, kSeparateText},
    {Rule::device_stream_stream_per_device_type, Kind::not_observable,
     "a stream does not show the producer's other streams; one-device-type reports a mixture"},
    {Rule::device_stream_result_schema_on_cpu, Kind::not_observable, kLaterRead},
    {Rule::device_stream_result_end_checked, Kind::not_observable, kConsumerBranch},
    {Rule::device_stream_result_outlives_stream, Kind::not_observable, kLaterRead},
};

constexpr bool has(const StreamRules& rules, Rule rule) {
  const auto checked = {rules.callbacks_set,
                        rules.get_schema_after_release,
                        rules.get_next_after_release,
                        rules.get_last_error_after_release,
                        rules.get_last_error_only_after_error,
                        rules.errno_codes,
                        rules.error_text,
                        rules.calls_serialized,
                        rules.private_data_untouched,
                        rules.release_like_array,
                        rules.schema_constant,
                        rules.end_is_released_array,
                        rules.released_independently};
  return std::ranges::find(checked, rule) != checked.end();
}

constexpr bool is_checked(Rule rule) {
  const auto is_in = [=](const auto& rules) {
    return std::ranges::find(rules, rule) != std::ranges::end(rules);
  };
  return is_in(kDeviceRules) || is_in(kAsyncRules) || is_in(kHookRules) || is_in(kShapeRules) ||
         is_in(kDataRules) || has(kStreamRules, rule) || has(kDeviceStreamRules, rule);
}

constexpr bool has_kind(Rule rule) {
  return std::ranges::any_of(kUnchecked,
                             [=](const Unchecked& unchecked) { return unchecked.rule == rule; });
}

/// Whether each rule of the family has either a checker or a kind.
constexpr bool is_complete(std::string_view family) {
  std::size_t at = 0;
  for (const RuleFacts& entry : kRules) {
    const Rule rule = static_cast<Rule>(at++);
    if (entry.family == family && is_checked(rule) == has_kind(rule)) return false;
  }
  return true;
}
static_assert(is_complete("c-stream"));
static_assert(is_complete("c-device-stream"));
static_assert(is_complete("c-async-stream"));

}  // namespace fletching::validate

#endif  // FLETCHING_SRC_VALIDATE_PLACES_HPP
