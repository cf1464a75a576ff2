// SPDX-License-Identifier: Apache-2.0
//
// Limits on the depth and size of a schema or array, and a checked walk through a foreign tree.
#ifndef FLETCHING_DETAIL_OWNERSHIP_TREE_HPP
#define FLETCHING_DETAIL_OWNERSHIP_TREE_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Maximum number of levels, because the walk is recursive.
inline constexpr int kMaxDepth = 256;

/// Maximum number of structs in a tree, and therefore of children in a list. No table has that many
/// columns, but an uninitialized count or a cycle of structs exceeds the limit.
inline constexpr int64_t kMaxStructs = int64_t{1} << 22;

/// Returns the children of a live struct. Empty if the list is NULL or if the count is negative or
/// above kMaxStructs.
template <class Base>
std::span<Base* const> children_of(const Base& parent) noexcept {
  if (parent.children == nullptr || parent.n_children <= 0 || parent.n_children > kMaxStructs) {
    return {};
  }
  return {parent.children, static_cast<size_t>(parent.n_children)};
}

/// State of walk().
template <class Base, class Visit>
class Walk {
 public:
  Walk(const char* operation, Visit& visit) noexcept : operation_(operation), visit_(visit) {}

  bool go(Base* node, int depth = 0) {
    if (node == nullptr) return refuse("is NULL");
    if (depth == kMaxDepth)
      return refuse("is nested too deep: expected at most " + std::to_string(kMaxDepth) +
                    " levels");
    if (++structs_ > kMaxStructs)
      return refuse("is one of too many: expected at most " + std::to_string(kMaxStructs));
    if (const char* wrong = visit_(*node)) return refuse(wrong);
    if (node->release == nullptr) return true;
    if (node->n_children < 0 || node->n_children > kMaxStructs) {
      return refuse("has n_children out of range: expected 0 to " + std::to_string(kMaxStructs) +
                    ", got " + std::to_string(node->n_children));
    }
    if (node->n_children > 0 && node->children == nullptr) {
      return refuse("has children NULL: expected a list of " + std::to_string(node->n_children));
    }
    for (Base* child : children_of(*node)) {
      if (!go(child, depth + 1)) return false;
    }
    return node->dictionary == nullptr || go(node->dictionary, depth + 1);
  }

  [[nodiscard]] Status result() && { return std::move(result_); }

 private:
  FLETCHING_DETAIL_COLD bool refuse(const std::string& what) {
    result_ = Error(EINVAL, std::string(operation_) + ": the struct or a descendant " + what);
    return false;
  }

  const char* operation_;
  Visit& visit_;
  int64_t structs_ = 0;
  Status result_;
};

/// Calls `visit(node)` for *root and for every struct below it: a parent before its children, the
/// children in order, then the dictionary. Skips the descendants of a released struct. `visit`
/// returns NULL or the problem, for example "has no format".
///
/// Stops at the first error. Errors: EINVAL, prefixed with `operation`, if `visit` returns a
/// problem, a struct is NULL, n_children is negative, above kMaxStructs or without a list, or the
/// tree has too many levels or structs. May throw std::bad_alloc.
template <class Base, class Visit>
Status walk(const char* operation, Base* root, Visit visit) {
  Walk<Base, Visit> walk(operation, visit);
  walk.go(root);
  return std::move(walk).result();
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_OWNERSHIP_TREE_HPP
