// SPDX-License-Identifier: Apache-2.0
//
// For producers: builds a schema with all its children in one allocation.
#ifndef FLETCHING_SCHEMA_BUILDER_HPP
#define FLETCHING_SCHEMA_BUILDER_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fletching/abi.h"
#include "fletching/detail/checked.hpp"
#include "fletching/detail/ownership/block.hpp"
#include "fletching/detail/ownership/tree.hpp"
#include "fletching/detail/text.hpp"
#include "fletching/format.hpp"
#include "fletching/metadata.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// A description of a schema. The strings are views of the caller's memory.
struct SchemaNode {
  // The "= {}" avoids a gcc warning for members that a designated initializer omits.
  // NOLINTBEGIN(readability-redundant-member-init)
  std::string_view format;              ///< "i", "+s", ...: UTF-8, not empty
  std::string_view name = {};           ///< UTF-8
  std::vector<KeyValue> metadata = {};  ///< empty becomes NULL
  int64_t flags = ARROW_FLAG_NULLABLE;
  std::vector<SchemaNode> children = {};
  std::vector<SchemaNode> dictionary = {};  ///< empty, or one node: the type of the values
  // NOLINTEND(readability-redundant-member-init)
};

namespace detail {

struct NoObject {};
using SchemaBlock = Block<ArrowSchema, char, NoObject>;

/// The size of a schema's block.
struct SchemaSize {
  int64_t structs = 0;
  Size text = 0;  // empty: overflow
};

/// Rejects text that a C string cannot represent.
inline Status check_text(std::string_view text, const char* what) {
  const auto refused = [&](const char* why) { return Error(EINVAL, std::string(what) + why); };
  if (text.find('\0') != std::string_view::npos)
    return refused(": NUL character: expected text without it");
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return refused(": not UTF-8");
    text.remove_prefix(length);
  }
  return {};
}

inline bool is_integer(std::string_view format) {
  const Result<Format> type = parse_format(format);
  return type && type->is_integer();
}

inline bool is_run_end(std::string_view format) {
  const Result<Format> type = parse_format(format);
  return type &&
         (type->id == TypeId::kInt16 || type->id == TypeId::kInt32 || type->id == TypeId::kInt64);
}

/// Rejects maps, run ends and indices that no consumer can read. Arrow C data interface, "Data type
/// description".
inline Status check_below(const SchemaNode& node) {
  const std::vector<SchemaNode>& children = node.children;
  if (!node.dictionary.empty() && !is_integer(node.format)) {
    return Error(EINVAL, "format: wrong for dictionary indices: expected an integer, got " +
                             quote(node.format));
  }
  if (node.format == "+m" &&
      (children.size() != 1 || children[0].format != "+s" || children[0].children.size() != 2)) {
    return Error(EINVAL, "children of a map: expected one struct of a key and a value");
  }
  if (node.format == "+r" && (children.size() != 2 || !is_run_end(children[0].format))) {
    return Error(EINVAL,
                 "children of run ends: expected integers of 16, 32 or 64 bits, and values");
  }
  return {};
}

/// Adds the size of `node` to *size. The error starts with the path below `node`.
inline Status measure(const SchemaNode& node, SchemaSize* size, int depth = 0) {
  if (depth == kMaxDepth)
    return Error(EINVAL,
                 "nested too deep: expected at most " + std::to_string(kMaxDepth) + " levels");
  if (node.format.empty()) return Error(EINVAL, "format: empty: expected a format string");
  if (Status format = check_text(node.format, "format"); !format) return format;
  if (Status name = check_text(node.name, "name"); !name) return name;
  if (node.dictionary.size() > 1)
    return Error(EINVAL,
                 "dictionary: expected at most one, got " + std::to_string(node.dictionary.size()));
  if (Status known = check_below(node); !known) return known;
  if (++size->structs > kMaxStructs)
    return Error(EINVAL,
                 "one of too many: expected at most " + std::to_string(kMaxStructs) + " structs");
  const auto add_text = [size](size_t bytes) {
    size->text = add(size->text, size_of(static_cast<int64_t>(bytes)));
  };
  add_text(node.format.size() + 1);
  add_text(node.name.size() + 1);
  if (!node.metadata.empty()) {
    const Result<size_t> metadata = encoded_size(node.metadata);
    if (!metadata) return metadata.error();
    add_text(*metadata);
  }
  const auto below = [&](const SchemaNode& child, const std::string& where) -> Status {
    const Status measured = measure(child, size, depth + 1);
    if (measured) return {};
    return Error(measured.error().code(), where + ": " + measured.error().message());
  };
  for (size_t i = 0; i < node.children.size(); ++i) {
    Status child = below(node.children[i], "child " + std::to_string(i));
    if (!child) return child;
  }
  return node.dictionary.empty() ? Status() : below(node.dictionary.front(), "dictionary");
}

/// Writes schemas into a block of sufficient size.
class SchemaWriter {
 public:
  explicit SchemaWriter(SchemaBlock* block) noexcept
      : block_(block), next_struct_(block->structs()), next_text_(block->extra()) {}

  void write(const SchemaNode& node, ArrowSchema* out) noexcept {
    std::memset(out, 0, sizeof *out);
    out->format = put_text(node.format);
    out->name = put_text(node.name);  // "" too: some consumers reject NULL
    out->metadata = node.metadata.empty() ? nullptr : put_metadata(node.metadata);
    out->flags = node.flags;
    out->n_children = static_cast<int64_t>(node.children.size());
    if (!node.children.empty()) {
      ArrowSchema* first = std::exchange(next_struct_, next_struct_ + node.children.size());
      out->children = block_->pointers() + (first - block_->structs());
      for (size_t i = 0; i < node.children.size(); ++i) {
        out->children[i] = first + i;
        write(node.children[i], first + i);
      }
    }
    if (!node.dictionary.empty()) {
      out->dictionary = next_struct_++;
      write(node.dictionary.front(), out->dictionary);
    }
    join_block(out, block_);
  }

 private:
  const char* put_text(std::string_view text) noexcept {
    char* end = next_text_ + text.copy(next_text_, text.size());
    *end = '\0';
    return std::exchange(next_text_, end + 1);
  }

  const char* put_metadata(const std::vector<KeyValue>& pairs) noexcept {
    return std::exchange(next_text_, encode_to(next_text_, pairs));
  }

  SchemaBlock* block_;
  ArrowSchema* next_struct_;
  char* next_text_;
};

}  // namespace detail

/// Makes a schema from `node`:
///
///     auto schema = make_schema({.format = "+s", .children = {{.format = "i", .name = "key"},
///                                                             {.format = "g", .name = "value"}}});
///
/// Ownership: the caller owns the schema. It is one allocation, including copies of the strings,
/// which lives until the schema and every child that was moved out of it are released, on any
/// thread.
///
/// Errors: EINVAL for an empty format, for a format or name that is not UTF-8 or contains a NUL,
/// for metadata that cannot be encoded, for maps, run ends and dictionary indices with wrong
/// children or format, for more than 256 levels and for more than 2^22 structs. The message
/// contains the path of the child. ENOMEM. Other formats are not validated.
///
/// Source: Arrow C data interface, "The ArrowSchema structure".
inline Result<Schema> make_schema(const SchemaNode& node) noexcept {
  return detail::guarded([&]() -> Result<Schema> {
    detail::SchemaSize size;
    const Status measured = detail::measure(node, &size);
    if (!measured) return Error(EINVAL, "make_schema: " + measured.error().message());
    detail::SchemaBlock* block = nullptr;
    if (size.text) block = detail::SchemaBlock::make(size.structs - 1, *size.text, {});
    if (block == nullptr) return detail::out_of_memory();
    block->shares.store(size.structs, std::memory_order_relaxed);
    Result<Schema> schema(std::in_place);
    detail::SchemaWriter(block).write(node, schema->get());
    return schema;
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_SCHEMA_BUILDER_HPP
