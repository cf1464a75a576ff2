// SPDX-License-Identifier: Apache-2.0
//
// One schema handed out many times, without copying its texts.
#ifndef FLETCHING_SHARED_SCHEMA_HPP
#define FLETCHING_SHARED_SCHEMA_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching {
namespace detail {

/// What a schema of share_schema holds: the original, which has the texts, and nodes of its own, so
/// that children can be moved out of it.
struct SharedSchemaNode {
  std::shared_ptr<const Schema> original;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
  ArrowSchema dictionary{};
};

inline void release_shared_schema(ArrowSchema* self) noexcept {
  const std::unique_ptr<SharedSchemaNode> node(static_cast<SharedSchemaNode*>(self->private_data));
  self->release = nullptr;
  for (ArrowSchema& child : node->children) {
    if (child.release != nullptr) child.release(&child);
  }
  if (node->dictionary.release != nullptr) node->dictionary.release(&node->dictionary);
}

/// Deeper nesting is refused: it would use up the stack.
inline constexpr int kMaxSchemaDepth = 1000;

/// Fills the zeroed *target. Whatever it returns, *target is to be released. May throw.
inline Status share_node(const std::shared_ptr<const Schema>& original, const ArrowSchema& from,
                         ArrowSchema* target, int depth) {
  const auto refuse = [](std::string text) { return Error(EINVAL, std::move(text)); };
  if (depth > kMaxSchemaDepth) return refuse("the schema is nested deeper than 1000 levels");
  if (from.release == nullptr) return refuse("the schema, or a child of it, is released");
  if (from.format == nullptr) return refuse("ArrowSchema.format is NULL");
  if (from.n_children < 0 || from.n_children > std::numeric_limits<std::int32_t>::max()) {
    return refuse("ArrowSchema.n_children is " + std::to_string(from.n_children));
  }
  if (from.n_children > 0 && from.children == nullptr) {
    return refuse("ArrowSchema.children is NULL, and n_children is not 0");
  }
  auto owned = std::make_unique<SharedSchemaNode>();
  SharedSchemaNode& node = *owned;
  node.original = original;
  node.children.resize(static_cast<std::size_t>(from.n_children));
  for (ArrowSchema& child : node.children) node.pointers.push_back(&child);

  *target = from;
  target->children = node.pointers.empty() ? nullptr : node.pointers.data();
  target->dictionary = from.dictionary != nullptr ? &node.dictionary : nullptr;
  target->release = release_shared_schema;
  target->private_data = owned.release();

  for (std::size_t i = 0; i < node.children.size(); ++i) {
    if (from.children[i] == nullptr) return refuse("ArrowSchema.children has a NULL");
    const Status status = share_node(original, *from.children[i], &node.children[i], depth + 1);
    if (!status) return status;
  }
  if (from.dictionary == nullptr) return {};
  return share_node(original, *from.dictionary, &node.dictionary, depth + 1);
}

}  // namespace detail

/// A schema with the contents of `original`, whose texts it points to and keeps alive.
///
/// Ownership: the caller's, children can be moved out of it; `original` is released with the last
/// schema that was made of it. Threads: any, also at once for one original.
/// Errors: EINVAL when `original` is NULL, released, or malformed (format NULL, n_children negative
/// or without children); ENOMEM.
inline Result<Schema> share_schema(const std::shared_ptr<const Schema>& original) noexcept {
  return detail::guarded([&]() -> Result<Schema> {
    if (original == nullptr) return Error(EINVAL, "there is no schema");
    Schema shared;
    Status status = detail::share_node(original, *original->get(), shared.out(), 0);
    if (!status) return std::move(status).error();
    return shared;
  });
}

}  // namespace fletching

#endif  // FLETCHING_SHARED_SCHEMA_HPP
