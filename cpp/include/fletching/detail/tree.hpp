// SPDX-License-Identifier: Apache-2.0
//
// How deep and how large a schema or an array may be, and the walk through one that somebody else
// has made.
#ifndef FLETCHING_DETAIL_TREE_HPP
#define FLETCHING_DETAIL_TREE_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// How many levels of structs there may be: they are walked by recursion.
inline constexpr int kMaxDepth = 256;

/// How many structs there may be in one tree, and so in one list of children. No table has as many
/// columns; a count that was never set does, and so do structs that are listed below themselves.
inline constexpr int64_t kMaxStructs = int64_t{1} << 22;

/// The children of a struct that is alive. None for a list that is NULL, and for a count that is
/// negative or above kMaxStructs.
template <class Base>
std::span<Base* const> children_of(const Base& parent) noexcept {
  if (parent.children == nullptr || parent.n_children <= 0 || parent.n_children > kMaxStructs) {
    return {};
  }
  return {parent.children, static_cast<size_t>(parent.n_children)};
}

/// The walk of walk().
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

/// Calls `visit(node)` for *root and for every struct below it: for a parent before its children,
/// for them in their order, then for the dictionary. What is below a released struct is not looked
/// at. `visit` returns NULL, or what is wrong: "has no format".
///
/// Errors, after which no more structs are visited: EINVAL, with `operation` in front, for what
/// `visit` says, for a struct that is NULL, for an n_children that is negative, above kMaxStructs
/// or without a list, and for structs that are nested too deep or too many. May throw
/// std::bad_alloc.
template <class Base, class Visit>
Status walk(const char* operation, Base* root, Visit visit) {
  Walk<Base, Visit> walk(operation, visit);
  walk.go(root);
  return std::move(walk).result();
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_TREE_HPP
