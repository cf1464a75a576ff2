#include "check.hpp"

#include <cstdint>
#include <string>

#include "text.hpp"

namespace fletching::roundtrip {
namespace {

// Deeper than any type that people use, and not so deep that foreign structs exhaust the stack.
constexpr int kMaxDepth = 64;

/// The node that is looked at: "/" for the root, "/2/d" for the dictionary of its third child.
struct Place {
  std::string path;
  int depth = 0;

  [[nodiscard]] Place below(const std::string& name) const {
    return {path + "/" + name, depth + 1};
  }
  [[noreturn]] void refuse(const std::string& what) const {
    fail(EINVAL, (path.empty() ? "/" : path) + " " + what);
  }
  void require(bool condition, const std::string& what) const {
    if (!condition) refuse(what);
  }
};

void check_count(const Place& place, const std::string& field, std::int64_t count,
                 bool has_entries) {
  place.require(count >= 0, field + " is " + std::to_string(count));
  place.require(count == 0 || has_entries,
                field + " is " + std::to_string(count) + ", and the pointer to them is NULL");
}

/// What schemas and arrays have in common; `kind`: "schema".
template <typename Struct>
void check_node(const Place& place, const std::string& kind, const Struct& node) {
  place.require(node.release != nullptr, kind + " is released");
  place.require(place.depth <= kMaxDepth,
                kind + " is nested deeper than " + std::to_string(kMaxDepth));
  check_count(place, kind + ".n_children", node.n_children, node.children != nullptr);
  for (std::int64_t i = 0; i < node.n_children; ++i) {
    const std::string child = kind + ".children[" + std::to_string(i) + "]";
    place.require(node.children[i] != nullptr, child + " is NULL");
    place.require(node.children[i]->release != nullptr, child + " is released");
  }
}

void check_schema(const Place& place, const ArrowSchema& schema) {
  check_node(place, "schema", schema);
  place.require(schema.format != nullptr, "schema.format is NULL");
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    check_schema(place.below(std::to_string(i)), *schema.children[i]);
  }
  if (schema.dictionary != nullptr) check_schema(place.below("d"), *schema.dictionary);
}

/// `schema` has been checked.
void check_array(const Place& place, const ArrowSchema& schema, const ArrowArray& array) {
  check_node(place, "array", array);
  place.require(array.length >= 0, "array.length is " + std::to_string(array.length));
  place.require(array.offset >= 0, "array.offset is " + std::to_string(array.offset));
  place.require(array.null_count >= -1, "array.null_count is " + std::to_string(array.null_count));
  check_count(place, "array.n_buffers", array.n_buffers, array.buffers != nullptr);
  place.require(array.n_children == schema.n_children,
                "array.n_children is " + std::to_string(array.n_children) +
                    ", schema.n_children is " + std::to_string(schema.n_children));
  place.require((array.dictionary == nullptr) == (schema.dictionary == nullptr),
                "only one of schema and array has a dictionary");
  for (std::int64_t i = 0; i < array.n_children; ++i) {
    check_array(place.below(std::to_string(i)), *schema.children[i], *array.children[i]);
  }
  if (array.dictionary != nullptr) {
    check_array(place.below("d"), *schema.dictionary, *array.dictionary);
  }
}

}  // namespace

void check(const ArrowSchema& schema) { check_schema({}, schema); }

void check(const ArrowSchema& schema, const ArrowArray& array) {
  check_schema({}, schema);
  check_array({}, schema, array);
}

}  // namespace fletching::roundtrip
