// SPDX-License-Identifier: Apache-2.0
//
// Maps each rule to its check.
#ifndef FLETCHING_SRC_VALIDATE_PLACES_HPP
#define FLETCHING_SRC_VALIDATE_PLACES_HPP

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "rules.hpp"

namespace fletching::validate {

/// Rules that the stream checker reports for one kind of stream.
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

/// Additional checks of the device stream.
inline constexpr Rule kDeviceRules[] = {Rule::device_stream_device_type_set,
                                        Rule::device_stream_one_device_type};

/// Checks of async streams.
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

/// Struct rules that the hooks of schemas and batches report.
inline constexpr Rule kHookRules[] = {Rule::schema_release_set, Rule::schema_private_data_untouched,
                                      Rule::array_private_data_untouched, Rule::release_once,
                                      Rule::release_marks_released};

/// Rules that check_array reports at level SHAPE.
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

/// Additional rules that check_data reports at level DATA.
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

/// Rules that check_members reports at level SHAPE.
inline constexpr Rule kMemberRules[] = {Rule::schema_format_utf8,
                                        Rule::schema_name_utf8,
                                        Rule::schema_flags_known,
                                        Rule::schema_flags_fit_type,
                                        Rule::schema_extension_keys,
                                        Rule::format_map_names,
                                        Rule::metadata_encoding,
                                        Rule::device_array_device_type_set,
                                        Rule::device_array_device_id_convention,
                                        Rule::device_array_reserved_zero,
                                        Rule::sync_event_null_where_none};

/// Rules that the tensor checker reports.
inline constexpr Rule kTensorRules[] = {
    Rule::dlpack_data_null_when_empty,   Rule::dlpack_strides_not_null,
    Rule::dlpack_device_id_of_cpu,       Rule::dlpack_type_code_known,
    Rule::dlpack_type_fp6_bits,          Rule::dlpack_type_fp4_bits,
    Rule::dlpack_managed_deleter_called, Rule::dlpack_managed_flags_zero_by_default};

/// Where a rule is checked that calls do not reveal: with a stress option, in the Python package,
/// or nowhere.
enum class Kind { not_observable, stress, python };

/// A rule without a checker.
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

inline constexpr const char* kMemory = "to allocate and to free memory is no call";
inline constexpr const char* kIntent = "the struct does not show what the producer meant";
inline constexpr const char* kMovedTwice =
    "a source that is released as well is reported as release.once";
inline constexpr const char* kMoved = "shown by FLETCHING_STRESS_MOVE";
inline constexpr const char* kRuntime = "only the runtime of the device knows";
inline constexpr const char* kCudaArray =
    "no C struct has it; fletching/cuda_array_interface.hpp reports it";
inline constexpr const char* kCapsule = "no C struct has it; the tests of the package check it";

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
    {Rule::format_timestamp_colon, Kind::not_observable, "reported as format.known"},
    {Rule::format_timezone_unquoted, Kind::not_observable, "reported as format.known"},
    {Rule::schema_metadata_null_when_absent, Kind::not_observable,
     "an empty string is shorter than what a reader of metadata reads"},
    {Rule::schema_flags_zero_when_absent, Kind::not_observable, kIntent},
    {Rule::schema_dictionary_when_encoded, Kind::not_observable, kIntent},
    {Rule::schema_dictionary_null_otherwise, Kind::not_observable, kIntent},
    {Rule::schema_extension_storage, Kind::not_observable,
     "a format that is no storage type is reported as format.known"},
    {Rule::metadata_native_endian, Kind::not_observable, "reported as metadata.encoding"},
    {Rule::array_buffers_aligned, Kind::not_observable,
     "a warning for what most libraries hand out; no level asks for it"},
    {Rule::array_data_immutable, Kind::not_observable, "a write to memory is no call"},
    {Rule::array_record_batch_is_struct, Kind::not_observable,
     "a stream of arrays may have any type"},
    {Rule::release_members_owned_by_producer, Kind::not_observable, kMemory},
    {Rule::release_consumer_frees_nothing, Kind::not_observable, kMemory},
    {Rule::release_not_on_children, Kind::not_observable,
     "release of a child is the callback of the producer"},
    {Rule::release_no_access_after, Kind::stress, "shown by FLETCHING_STRESS_POISON"},
    {Rule::release_address_independent, Kind::stress, kMoved},
    {Rule::release_walks_children, Kind::not_observable,
     "release of a child is the callback of the producer"},
    {Rule::move_marks_source, Kind::not_observable, kMovedTwice},
    {Rule::move_child_then_release_parent, Kind::not_observable, kLaterRead},
    {Rule::move_no_inner_pointers, Kind::stress, kMoved},
    {Rule::move_no_stored_address, Kind::stress, kMoved},
    {Rule::device_array_buffers_on_device, Kind::not_observable, kRuntime},
    {Rule::device_array_rest_on_cpu, Kind::not_observable,
     "a read of memory that is not there ends the process"},
    {Rule::device_array_device_id_set, Kind::not_observable, kRuntime},
    {Rule::device_array_members_owned_by_producer, Kind::not_observable, kMemory},
    {Rule::device_array_release_through_array, Kind::not_observable,
     "the address of a moved struct says nothing"},
    {Rule::device_array_released_like_array, Kind::not_observable,
     "reported as release.once and release.marks-released"},
    {Rule::device_array_move_marks_source, Kind::not_observable, kMovedTwice},
    {Rule::device_array_record_batch_is_struct, Kind::not_observable,
     "a stream of arrays may have any type"},
    {Rule::sync_event_waited_before_access, Kind::not_observable,
     "a wait is a call of the runtime"},
    {Rule::sync_event_type_of_table, Kind::not_observable, kRuntime},
    {Rule::sync_event_destroyed_by_release, Kind::not_observable, kRuntime},
    {Rule::cai_entries, Kind::python, kCudaArray},
    {Rule::cai_shape_tuple, Kind::python, kCudaArray},
    {Rule::cai_typestr, Kind::python, kCudaArray},
    {Rule::cai_data_pair, Kind::python, kCudaArray},
    {Rule::cai_zero_size_pointer, Kind::python, kCudaArray},
    {Rule::cai_version, Kind::python, kCudaArray},
    {Rule::cai_strides, Kind::python, kCudaArray},
    {Rule::cai_mask, Kind::python, kCudaArray},
    {Rule::cai_mask_shape, Kind::python, kCudaArray},
    {Rule::cai_descr, Kind::python, kCudaArray},
    {Rule::cai_data_device_accessible, Kind::not_observable, kRuntime},
    {Rule::cai_stream_not_zero, Kind::python, kCudaArray},
    {Rule::cai_stream_values, Kind::python, kCudaArray},
    {Rule::capsule_names, Kind::python, kCapsule},
    {Rule::capsule_moved_out, Kind::python, kCapsule},
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
         is_in(kDataRules) || is_in(kMemberRules) || is_in(kTensorRules) ||
         has(kStreamRules, rule) || has(kDeviceStreamRules, rule);
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
static_assert(is_complete("c-data"));
static_assert(is_complete("c-device-data"));
static_assert(is_complete("cuda-array-interface"));
static_assert(is_complete("pycapsule"));
static_assert(is_complete("dlpack"));

}  // namespace fletching::validate

#endif  // FLETCHING_SRC_VALIDATE_PLACES_HPP
