// SPDX-License-Identifier: Apache-2.0
//
// Checks of members that check_array ignores, at level SHAPE: strings, flags and metadata of
// schemas, and the members of a device array other than its array.
#ifndef FLETCHING_SRC_VALIDATE_MEMBERS_HPP
#define FLETCHING_SRC_VALIDATE_MEMBERS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "fletching/detail/text.hpp"
#include "fletching/metadata.hpp"
#include "hooks.hpp"
#include "record.hpp"
#include "rules.hpp"

namespace fletching::validate {

inline constexpr std::size_t kMostMetadata = std::size_t{1} << 26U;  // a larger block is malformed

/// Walk through an unchecked foreign schema. May throw.
class SchemaMembers {
 public:
  explicit SchemaMembers(Log& log) noexcept : log_(log) {}

  void visit(const ArrowSchema* schema, const std::string& path, int depth = 0) {
    constexpr int kDeepest = 256;
    if (schema == nullptr || schema->release == nullptr || depth == kDeepest || --left_ < 0) return;
    const std::string_view format = text(schema->format, Rule::schema_format_utf8, path);
    text(schema->name, Rule::schema_name_utf8, path);
    check_flags(*schema, format, path);
    check_metadata(*schema, path);
    if (format == "+m") check_map_names(*schema, path);
    const auto children = detail::children_of(*schema);
    for (std::size_t i = 0; i < children.size() && left_ > 0; ++i) {
      visit(children[i], path + ".children[" + std::to_string(i) + "]", depth + 1);
    }
    visit(schema->dictionary, path + ".dictionary", depth + 1);
  }

 private:
  void report(Rule rule, const std::string& path, const std::string& message) {
    if (++reported_ > kMostFindings) return;
    log_.report(facts(rule), nullptr, path.c_str(), message.c_str());
  }

  std::string_view text(const char* text, Rule rule, const std::string& path) {
    if (text == nullptr || std::memchr(text, '\0', kMostText) == nullptr) return {};
    if (!is_utf8(text)) report(rule, path, "text is not UTF-8: expected UTF-8");
    return text;
  }

  void check_flags(const ArrowSchema& schema, std::string_view format, const std::string& path) {
    constexpr std::int64_t kKnown =
        ARROW_FLAG_DICTIONARY_ORDERED | ARROW_FLAG_NULLABLE | ARROW_FLAG_MAP_KEYS_SORTED;
    if ((schema.flags & ~kKnown) != 0) {
      report(Rule::schema_flags_known, path,
             "flags has unknown bits: expected 0 to 7, got " + std::to_string(schema.flags));
    }
    if ((schema.flags & ARROW_FLAG_DICTIONARY_ORDERED) != 0 && schema.dictionary == nullptr) {
      report(Rule::schema_flags_fit_type, path,
             "DICTIONARY_ORDERED is set without a dictionary: expected it clear");
    }
    if ((schema.flags & ARROW_FLAG_MAP_KEYS_SORTED) != 0 && format != "+m") {
      report(
          Rule::schema_flags_fit_type, path,
          "MAP_KEYS_SORTED is set on another type: expected a map, got " + detail::quote(format));
    }
  }

  void check_metadata(const ArrowSchema& schema, const std::string& path) {
    if (schema.metadata == nullptr) return;
    const Result<MetadataView> view = MetadataView::read(schema.metadata, kMostMetadata);
    if (!view) return report(Rule::metadata_encoding, path, view.error().message());
    bool has_name = false;
    bool has_parameters = false;
    for (const auto& [key, value] : *view) {
      has_name = has_name || key == "ARROW:extension:name";
      has_parameters = has_parameters || key == "ARROW:extension:metadata";
    }
    if (!has_parameters || has_name) return;
    report(Rule::schema_extension_keys, path,
           "ARROW:extension:metadata without ARROW:extension:name: expected both");
  }

  void check_map_names(const ArrowSchema& map, const std::string& path) {
    if (map.n_children != 1 || map.children == nullptr) return;
    const ArrowSchema* const entries = map.children[0];
    check_name(entries, "entries", path);
    if (entries == nullptr || entries->release == nullptr || entries->n_children != 2 ||
        entries->children == nullptr) {
      return;
    }
    check_name(entries->children[0], "key", path);
    check_name(entries->children[1], "value", path);
  }
  void check_name(const ArrowSchema* child, std::string_view expected, const std::string& path) {
    if (child == nullptr || child->release == nullptr) return;
    const std::string_view name = child->name == nullptr ? "" : child->name;
    if (name == expected) return;
    report(Rule::format_map_names, path,
           "name of a child of a map: expected " + std::string(expected) + ", got " +
               detail::quote(name));
  }

  Log& log_;
  std::int64_t left_ = 1 << 22;
  std::size_t reported_ = 0;
};

/// Skips the check if out of memory.
inline void check_members(Log& log, const ArrowSchema& schema, const Path& path) noexcept {
  if (log.level() < FLETCHING_VALIDATE_SHAPE) return;
  try {
    SchemaMembers(log).visit(&schema, path.text());
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

inline void check_members(Log& log, const ArrowDeviceArray& array, const Path& path) noexcept {
  if (log.level() < FLETCHING_VALIDATE_SHAPE) return;
  const auto report = [&](Rule rule, const char* message) {
    log.report(facts(rule), nullptr, text_or_empty([&] { return path.text(); }).c_str(), message);
  };
  if (array.device_type == 0) {
    report(Rule::device_array_device_type_set, "device_type is 0: expected an ARROW_DEVICE_ value");
  }
  if (array.device_type == ARROW_DEVICE_CPU && array.device_id != -1) {
    report(Rule::device_array_device_id_convention, "device_id of the CPU: expected -1");
  }
  if (array.device_type == ARROW_DEVICE_CPU && array.sync_event != nullptr) {
    report(Rule::sync_event_null_where_none, "the CPU has no event type: expected NULL");
  }
  if (std::ranges::any_of(array.reserved, [](std::int64_t value) { return value != 0; })) {
    report(Rule::device_array_reserved_zero, "reserved is not zero: expected zeros");
  }
}

}  // namespace fletching::validate

#endif  // FLETCHING_SRC_VALIDATE_MEMBERS_HPP
