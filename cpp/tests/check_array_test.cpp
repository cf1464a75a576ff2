// Arrays checked against their schemas: every fault is reported by name, and no buffer is read that
// must not be.
#include "fletching/check_array.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"
#include "fletching/array_capacity.hpp"
#include "fletching/schema_builder.hpp"

namespace fletching {
namespace {

using testing::code_of;
using testing::fail_each_allocation;
using testing::Injection;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// An invalid address: a check that reads the buffer crashes.
const void* nowhere() { return reinterpret_cast<const void*>(std::uintptr_t{0x10}); }

/// Restores a tree that a test has changed, so that it can be released.
template <class Raw>
class ScopedRestore {
  using Base = detail::BaseOf<Raw>;

 public:
  explicit ScopedRestore(Owner<Raw>& owner) : owner_(owner) { keep(&detail::base(*owner.get())); }
  ScopedRestore(const ScopedRestore&) = delete;
  ScopedRestore& operator=(const ScopedRestore&) = delete;
  ~ScopedRestore() {
    if (owner_.is_released()) return;
    for (auto [node, copy] : kept_) {
      copy.release = node->release;
      *node = copy;
    }
    for (const auto& [place, child] : children_) *place = child;
  }

 private:
  void keep(Base* node) {
    kept_.emplace_back(node, *node);
    for (int64_t i = 0; i < node->n_children; ++i) {
      children_.emplace_back(&node->children[i], node->children[i]);
      keep(node->children[i]);
    }
    if (node->dictionary != nullptr) keep(node->dictionary);
  }

  Owner<Raw>& owner_;
  std::vector<std::pair<Base*, Base>> kept_;
  std::vector<std::pair<Base**, Base*>> children_;
};

/// A schema and a matching array of three values.
struct SchemaAndArray {
  explicit SchemaAndArray(const SchemaNode& node, int64_t variadic = 0)
      : schema(make_schema(node).value()) {
    auto builder = build_array_for(*schema, std::make_unique<int>(0), 64 * variadic).value();
    fill(builder, *schema, builder.root(), 3, variadic);
    array = builder.finish_cpu().value();
    kept_schema.emplace(schema);
    kept_array.emplace(array);
  }

  /// "array.children[1]: array.length-set", one line for each finding.
  [[nodiscard]] std::string faults() const {
    const ArrayFindings found = check_array(*schema, *array).value();
    std::string text;
    for (const ArrayFinding& finding : found.list) {
      text.append(finding.path).append(": ").append(finding.rule).append("\n");
      EXPECT_NE(finding.message, "");
    }
    // The other overloads must agree.
    EXPECT_EQ(code_of(verify_array(*schema, *array)), found.empty() ? 0 : EINVAL);
    EXPECT_EQ(check_array(*schema, array->array).value().list.size(), found.list.size());
    return text;
  }
  ArrowArray& root() { return array->array; }
  ArrowArray& child(int64_t index) { return *array->array.children[index]; }

  Schema schema;
  DeviceArray array;
  std::optional<ScopedRestore<ArrowSchema>> kept_schema;
  std::optional<ScopedRestore<ArrowDeviceArray>> kept_array;

 private:
  template <class Builder>
  static void fill(Builder& builder, const ArrowSchema& schema, ArrowArray& out, int64_t length,
                   int64_t variadic) {
    const Format format = parse_format(schema.format).value();
    const int64_t n = format.n_buffers + (format.is_view() ? 1 + variadic : 0);
    const std::vector<const void*> buffers(static_cast<size_t>(n), nowhere());
    builder.set(out, {.length = length, .null_count = n == 0 ? 0 : -1}, buffers);
    const int64_t below = format.id == TypeId::kFixedSizeList ? length * format.size : length;
    size_t i = 0;
    for (ArrowArray& child : builder.add_children(out, schema.n_children)) {
      fill(builder, *schema.children[i++], child, below, variadic);
    }
    if (schema.dictionary != nullptr) {
      fill(builder, *schema.dictionary, builder.add_dictionary(out), 2, variadic);
    }
  }
};

const SchemaNode kInt{.format = "i"};

/// One node of each type, with the children that it requires.
std::vector<SchemaNode> every_type() {
  std::vector<SchemaNode> nodes;
  for (const auto& plain : detail::kPlainFormats) {
    if (plain.n_children == 0) nodes.push_back({.format = plain.text});
  }
  for (const char* format : {"d:19,10", "d:9,2,32", "w:42", "w:0", "tss:", "tsn:Europe/Berlin"}) {
    nodes.push_back({.format = format});
  }
  for (const char* format : {"+l", "+L", "+vl", "+vL", "+w:3", "+w:0", "+ud:5", "+us:5", "+s"}) {
    nodes.push_back({.format = format, .children = {kInt}});
  }
  nodes.push_back({.format = "+s"});
  nodes.push_back({.format = "+ud:"});
  nodes.push_back({.format = "+m", .children = {{.format = "+s", .children = {kInt, kInt}}}});
  nodes.push_back({.format = "+r", .children = {{.format = "s"}, {.format = "u"}}});
  nodes.push_back({.format = "C", .dictionary = {{.format = "vu"}}});
  nodes.push_back({.format = "+s", .children = nodes});
  return nodes;
}

SchemaNode batch_of(SchemaNode inner) {
  return {.format = "+s", .children = {kInt, std::move(inner)}};
}

TEST(CheckArray, AcceptsEveryType) {
  for (const SchemaNode& node : every_type()) {
    for (const int64_t variadic : {0, 1, 3}) {
      const SchemaAndArray pair(node, variadic);
      EXPECT_EQ(pair.faults(), "") << node.format;
    }
  }
}

// The offsets, lengths and NULL buffers of an empty array.
TEST(CheckArray, AcceptsNullBuffersInEmptyArray) {
  for (const SchemaNode& node : every_type()) {
    SchemaAndArray pair(node);
    const auto empty = [](auto& self, ArrowArray& array) -> void {
      array.length = 0;
      array.null_count = 0;
      std::fill_n(array.buffers, array.n_buffers, nullptr);
      for (int64_t i = 0; i < array.n_children; ++i) self(self, *array.children[i]);
    };
    empty(empty, pair.root());
    EXPECT_EQ(pair.faults(), "") << node.format;
  }
}

TEST(CheckArray, DoesNotAllocateForValidArray) {
  const SchemaAndArray pair(batch_of({.format = "+s", .children = every_type()}));
  const int64_t before = testing::allocations();
  EXPECT_TRUE(check_array(*pair.schema, *pair.array).value().empty());
  EXPECT_TRUE(verify_array(*pair.schema, *pair.array));
  EXPECT_EQ(testing::allocations(), before);
}

TEST(CheckArray, RejectsNumbersOutOfRange) {
  const auto faults = [](int64_t length, int64_t offset, int64_t null_count) {
    SchemaAndArray pair(kInt);
    pair.root().length = length;
    pair.root().offset = offset;
    pair.root().null_count = null_count;
    return pair.faults();
  };
  EXPECT_EQ(faults(3, 0, 3), "");
  EXPECT_EQ(faults(3, 5, -1), "");
  EXPECT_EQ(faults(-1, 0, 0), "array: array.length-set\n");
  EXPECT_EQ(faults(3, -1, 0), "array: array.offset-not-negative\n");
  EXPECT_EQ(faults(3, 0, 4), "array: array.null-count-range\n");
  EXPECT_EQ(faults(3, 0, -2), "array: array.null-count-range\n");
  EXPECT_EQ(faults(3, kMost - 2, 0), "array: array.buffers-large-enough\n");  // the sum overflows
  EXPECT_EQ(faults(0, kMost, 0), "array: array.buffers-large-enough\n");      // its bits overflow
  EXPECT_EQ(faults(kMost, 0, 0), "array: array.buffers-large-enough\n");
  EXPECT_EQ(faults(std::numeric_limits<int64_t>::min(), -1, kMost),
            "array: array.length-set\narray: array.offset-not-negative\n");
}

TEST(CheckArray, AcceptsLargestLengthWithoutBuffers) {
  SchemaAndArray pair({.format = "n"});
  pair.root().length = kMost - 1;
  pair.root().offset = 1;
  EXPECT_EQ(pair.faults(), "");
  pair.root().offset = 2;
  EXPECT_NE(pair.faults(), "");
}

TEST(CheckArray, RejectsWrongBufferCounts) {
  for (const SchemaNode& node : every_type()) {
    SchemaAndArray pair(node);
    const int64_t right = pair.root().n_buffers;
    const bool view = parse_format(node.format)->is_view();
    for (const int64_t n : {right - 1, right + 1, int64_t{-1}, kMost}) {
      pair.root().n_buffers = n;
      if (view && n == right + 1) continue;  // the sizes buffer would have this length
      EXPECT_EQ(pair.faults(), view && n == 2 ? "array: array.view-sizes-buffer\n"
                                              : "array: array.n-buffers-of-type\n")
          << node.format << ": " << n;
    }
  }
}

TEST(CheckArray, RejectsNullBuffers) {
  constexpr std::string_view kFault = "array: array.buffers-null-only-when\n";
  const auto faults = [](const char* format, int64_t index, int64_t null_count = 0,
                         int64_t variadic = 0) {
    SchemaAndArray pair({.format = format}, variadic);
    pair.root().null_count = null_count;
    pair.root().buffers[index] = nullptr;
    return pair.faults();
  };
  EXPECT_EQ(faults("i", 0), "");
  EXPECT_EQ(faults("i", 0, 1), kFault);
  EXPECT_EQ(faults("i", 0, -1), "");  // null count unknown, but no nulls
  EXPECT_EQ(faults("i", 1, -1), kFault);
  EXPECT_EQ(faults("i", 1), kFault);
  EXPECT_EQ(faults("u", 1), kFault);
  EXPECT_EQ(faults("u", 2), "");  // all values may be empty
  EXPECT_EQ(faults("w:0", 1), "");
  EXPECT_EQ(faults("vu", 1), kFault);
  EXPECT_EQ(faults("vu", 2), "");            // no variadic buffers, no sizes
  EXPECT_EQ(faults("vu", 2, 0, 1), "");      // an empty variadic buffer
  EXPECT_EQ(faults("vu", 3, 0, 1), kFault);  // the sizes buffer is required
  for (const char* format : {"+vl", "+vL"}) {
    SchemaAndArray views({.format = format, .children = {kInt}});
    views.root().buffers[1] = nullptr;
    views.root().buffers[2] = nullptr;
    EXPECT_EQ(views.faults(), std::string(kFault).append(kFault));
  }
  SchemaAndArray dense({.format = "+ud:5", .children = {kInt}});
  dense.root().buffers[0] = nullptr;
  dense.root().buffers[1] = nullptr;
  EXPECT_EQ(dense.faults(), std::string(kFault).append(kFault));
  SchemaAndArray list(kInt);
  list.root().buffers = nullptr;
  EXPECT_EQ(list.faults(), "array: array.buffers-count\n");
}

TEST(CheckArray, RejectsMissingChildren) {
  const auto faults = [](const auto& spoil) {
    SchemaAndArray pair(batch_of(batch_of({.format = "C", .dictionary = {{.format = "u"}}})));
    spoil(pair);
    return pair.faults();
  };
  EXPECT_EQ(faults([](SchemaAndArray& pair) { pair.root().n_children = 1; }),
            "array: array.n-children-of-type\n");
  EXPECT_EQ(faults([](SchemaAndArray& pair) { pair.root().n_children = kMost; }),
            "array: array.n-children-of-type\n");
  EXPECT_EQ(faults([](SchemaAndArray& pair) { pair.root().children = nullptr; }),
            "array: array.children-null-only-when-none\n");
  EXPECT_EQ(faults([](SchemaAndArray& pair) { pair.child(1).children[0] = nullptr; }),
            "array.children[1].children[0]: array.children-count\n");
  EXPECT_EQ(faults([](SchemaAndArray& pair) { pair.array.take_child(1).value().release(); }),
            "array.children[1]: array.release-set\n");
  EXPECT_EQ(faults([](SchemaAndArray& pair) {
              pair.child(1).children[1]->dictionary->release(pair.child(1).children[1]->dictionary);
            }),
            "array.children[1].children[1].dictionary: array.release-set\n");
  EXPECT_EQ(faults([](SchemaAndArray& pair) { pair.array.release(); }),
            "array: array.release-set\n");
  EXPECT_EQ(faults([](SchemaAndArray& pair) { pair.schema.take_child(0).value().release(); }),
            "schema.children[0]: schema.release-set\n");
  EXPECT_EQ(faults([](SchemaAndArray& pair) { pair.schema->children[1] = nullptr; }),
            "schema.children[1]: schema.children-count\n");
  EXPECT_EQ(faults([](SchemaAndArray& pair) { pair.schema->children = nullptr; }),
            "schema: schema.children-null-only-when-none\n");
  EXPECT_EQ(faults([](SchemaAndArray& pair) { pair.schema->n_children = -1; }),
            "schema: schema.n-children-set\n");
  EXPECT_EQ(faults([](SchemaAndArray& pair) { pair.schema.release(); }),
            "schema: schema.release-set\n");
}

// A map of int32 to int32: nulls in the entries, keys and values.
TEST(CheckArray, RejectsNullsInMapEntriesAndKeys) {
  const auto faults = [](int64_t entries, int64_t keys, int64_t values) {
    SchemaAndArray pair({.format = "+m", .children = {{.format = "+s", .children = {kInt, kInt}}}});
    pair.child(0).null_count = entries;
    pair.child(0).children[0]->null_count = keys;
    pair.child(0).children[1]->null_count = values;
    return pair.faults();
  };
  EXPECT_EQ(faults(0, 0, 3), "");
  EXPECT_EQ(faults(-1, -1, -1), "");
  EXPECT_EQ(faults(1, 0, 0), "array.children[0]: format.map-child\n");
  EXPECT_EQ(faults(0, 1, 0), "array.children[0].children[0]: format.map-child\n");
  // A key of struct type may have children with nulls.
  SchemaAndArray nested(
      {.format = "+m",
       .children = {{.format = "+s", .children = {{.format = "+s", .children = {kInt}}, kInt}}}});
  nested.child(0).children[0]->children[0]->null_count = 1;
  EXPECT_EQ(nested.faults(), "");
}

TEST(CheckArray, RejectsNullsInRunEnds) {
  const auto faults = [](int64_t parent, int64_t ends, int64_t values) {
    SchemaAndArray pair({.format = "+r", .children = {{.format = "s"}, kInt}});
    pair.root().null_count = parent;
    pair.child(0).null_count = ends;
    pair.child(1).null_count = values;
    return pair.faults();
  };
  EXPECT_EQ(faults(-1, -1, 3), "");
  EXPECT_EQ(faults(0, 0, 0), "");
  EXPECT_EQ(faults(3, 0, 0), "array: array.null-count-correct\n");
  EXPECT_EQ(faults(0, 1, 0), "array.children[0]: format.run-end-children\n");
}

TEST(CheckArray, RejectsUnionNulls) {
  for (const char* format : {"+ud:5", "+us:5"}) {
    SchemaAndArray pair({.format = format, .children = {kInt}});
    pair.child(0).null_count = 2;
    for (const int64_t null_count : {-1, 0}) {
      pair.root().null_count = null_count;
      EXPECT_EQ(pair.faults(), "") << format;
    }
    pair.root().null_count = 1;
    EXPECT_EQ(pair.faults(), "array: array.null-count-correct\n") << format;
  }
  SchemaAndArray null({.format = "n"});
  null.root().null_count = 3;
  EXPECT_EQ(null.faults(), "");
}

TEST(CheckArray, NamesPreArrow1UnionLayout) {
  for (const auto& [format, n] : {std::pair{"+ud:5", 3}, {"+us:5", 2}}) {
    SchemaAndArray pair({.format = format, .children = {kInt}});
    pair.root().n_buffers = n;
    EXPECT_NE(verify_array(*pair.schema, *pair.array)
                  .error()
                  .message()
                  .find("union layout before Arrow 1.0"),
              std::string::npos);
  }
}

TEST(CheckArray, RejectsInvalidFormats) {
  const auto faults = [](const SchemaNode& node, const char* format) {
    SchemaAndArray pair(node);
    ArrowSchema* schema =
        pair.schema->n_children == 0 ? pair.schema.get() : pair.schema->children[0];
    schema->format = format;
    return pair.faults();
  };
  EXPECT_EQ(faults(kInt, "?"), "schema: format.known\n");
  EXPECT_EQ(faults(kInt, nullptr), "schema: schema.format-set\n");
  EXPECT_EQ(faults(kInt, "+l"), "schema: schema.n-children-set\n");
  EXPECT_EQ(faults({.format = "C", .dictionary = {kInt}}, "f"),
            "schema: format.dictionary-index-type\n");
  EXPECT_EQ(faults({.format = "+r", .children = {{.format = "s"}, kInt}}, "g"),
            "schema.children[0]: format.run-end-children\n");
  EXPECT_EQ(faults({.format = "+m", .children = {{.format = "+s", .children = {kInt, kInt}}}}, "i"),
            "schema.children[0]: format.map-child\n");
}

TEST(CheckArray, RejectsShortChildren) {
  constexpr std::string_view kFault = "array.children[0]: array.buffers-large-enough\n";
  const auto faults = [](const SchemaNode& node, int64_t length, int64_t offset = 0) {
    SchemaAndArray pair(node);
    pair.child(0).length = length;
    pair.child(0).null_count = 0;
    pair.root().offset = offset;
    return pair.faults();
  };
  for (const char* format : {"+s", "+us:5"}) {
    EXPECT_EQ(faults({.format = format, .children = {kInt}}, 4), "") << format;
    EXPECT_EQ(faults({.format = format, .children = {kInt}}, 2), kFault) << format;
    EXPECT_EQ(faults({.format = format, .children = {kInt}}, 3, 1), kFault) << format;
  }
  const SchemaNode lists{.format = "+w:2", .children = {kInt}};
  EXPECT_EQ(faults(lists, 6), "");
  EXPECT_EQ(faults(lists, 5), kFault);
  EXPECT_EQ(faults(lists, 8, 1), "");
  EXPECT_EQ(faults(lists, 7, 1), kFault);
  EXPECT_EQ(faults(lists, 6, kMost / 2), "array: array.buffers-large-enough\n");
  for (const char* format : {"+l", "+vL", "+ud:5"}) {
    EXPECT_EQ(faults({.format = format, .children = {kInt}}, 0), "") << format;
  }
  const SchemaNode runs{.format = "+r", .children = {{.format = "s"}, kInt}};
  EXPECT_EQ(faults(runs, 1), "");
  EXPECT_EQ(faults(runs, 0), kFault);
  EXPECT_EQ(faults(runs, 4), "array.children[1]: array.buffers-large-enough\n");
}

TEST(CheckArray, ListsFindingsUpToMaximum) {
  SchemaAndArray pair({.format = "+s", .children = std::vector<SchemaNode>(100, kInt)});
  for (const int64_t i : {0, 1, 2}) pair.child(i).n_buffers = 3;
  pair.child(1).length = -1;
  EXPECT_EQ(code_of(verify_array(*pair.schema, *pair.array)), EINVAL);
  EXPECT_EQ(verify_array(*pair.schema, *pair.array).error().message(),
            "array.children[0]: n_buffers is wrong: expected 2, got 3 (rule "
            "array.n-buffers-of-type); and more");
  const ArrayFindings found = check_array(*pair.schema, *pair.array).value();
  EXPECT_EQ(found.list.size(), 4U);
  EXPECT_FALSE(found.more);
  EXPECT_EQ(found.status().error().message(),
            "array.children[0]: n_buffers is wrong: expected 2, got 3 (rule "
            "array.n-buffers-of-type); array.children[1]: length is negative: expected 0 or more, "
            "got -1 (rule array.length-set); array.children[1]: n_buffers is wrong: expected 2, "
            "got 3 (rule array.n-buffers-of-type); array.children[2]: n_buffers is wrong: expected "
            "2, got 3 (rule array.n-buffers-of-type)");

  for (int64_t i = 0; i < 100; ++i) pair.child(i).n_buffers = 3;
  const ArrayFindings many = check_array(*pair.schema, *pair.array).value();
  EXPECT_EQ(many.list.size(), kMostFindings);
  EXPECT_TRUE(many.more);
  EXPECT_FALSE(check_array(*pair.schema, *pair.array, 0).value().empty());
}

// A schema and an array that contain themselves as a child.
TEST(CheckArray, LimitsDepth) {
  SchemaAndArray deep({.format = "+l", .children = {kInt}});
  deep.schema->children[0] = deep.schema.get();
  deep.root().children[0] = &deep.root();
  const ArrayFindings found = check_array(*deep.schema, *deep.array).value();
  ASSERT_EQ(found.list.size(), 1U);
  EXPECT_EQ(found.list[0].rule, "limit.depth");
  SchemaAndArray wide({.format = "+s", .children = {kInt, kInt}});
  for (const int64_t i : {0, 1}) {
    wide.schema->children[i] = wide.schema.get();
    wide.root().children[i] = &wide.root();
  }
  EXPECT_TRUE(check_array(*wide.schema, *wide.array, kMostFindings + 1).value().more);
}

// Three levels of 200 structs, each level the same struct 200 times: 8 million in total.
TEST(CheckArray, LimitsNumberOfStructs) {
  SchemaAndArray many({.format = "+s", .children = {batch_of(batch_of({.format = "n"}))}});
  ArrowSchema* schema = many.schema.get();
  ArrowArray* array = &many.root();
  std::vector<std::vector<ArrowSchema*>> schemas;
  std::vector<std::vector<ArrowArray*>> arrays;
  for (int level = 0; level < 3; ++level) {
    ArrowSchema* next_schema = schema->children[schema->n_children - 1];
    ArrowArray* next_array = array->children[array->n_children - 1];
    schema->children = schemas.emplace_back(200, next_schema).data();
    array->children = arrays.emplace_back(200, next_array).data();
    schema->n_children = array->n_children = 200;
    schema = next_schema;
    array = next_array;
  }
  const ArrayFindings found = check_array(*many.schema, *many.array).value();
  ASSERT_EQ(found.list.size(), 1U);
  EXPECT_EQ(found.list[0].rule, "limit.structs");
  EXPECT_TRUE(found.more);
}

TEST(CheckArray, AllocationFailureInErrorTextReturnsEnomem) {
  SchemaAndArray pair(kInt);
  pair.root().length = -1;
  pair.schema->format = "?";
  const int64_t failed = fail_each_allocation([&](Injection& inject) {
    const Status status = inject([&] { return verify_array(*pair.schema, *pair.array); });
    EXPECT_EQ(code_of(status), inject.fired() ? ENOMEM : EINVAL);
  });
  EXPECT_GT(failed, 2);
}

// --- Two schemas ---

std::string difference(const SchemaNode& expected, const SchemaNode& actual) {
  const Schema first = make_schema(expected).value();
  const Schema second = make_schema(actual).value();
  const Status same = verify_same_types(*first, *second);
  EXPECT_TRUE(verify_same_types(*first, *first));
  return same ? "" : same.error().message();
}

TEST(VerifySameTypes, NamesDifferingField) {
  const auto nested = [](SchemaNode items) {
    items.name = "items";
    return SchemaNode{.format = "+s",
                      .children = {{.format = "i", .name = "key"},
                                   {.format = "+l", .name = "a", .children = {std::move(items)}}}};
  };
  EXPECT_EQ(difference(nested({.format = "g"}), nested({.format = "g"})), "");
  EXPECT_EQ(difference(nested({.format = "g"}), nested({.format = "l"})),
            "field \"a.items\": expected format \"g\", got \"l\"");
  EXPECT_EQ(difference(nested({.format = "+s"}), nested({.format = "+s", .children = {kInt}})),
            "field \"a.items\": expected number of children 0, got 1");
  EXPECT_EQ(difference(nested({.format = "c", .dictionary = {kInt}}), nested({.format = "c"})),
            "field \"a.items\": expected a dictionary, got no dictionary");
  EXPECT_EQ(difference(nested({.format = "c"}), nested({.format = "c", .dictionary = {kInt}})),
            "field \"a.items\": expected no dictionary, got a dictionary");
  EXPECT_EQ(difference(nested({.format = "c", .dictionary = {kInt}}),
                       nested({.format = "c", .dictionary = {{.format = "u"}}})),
            "field \"a.items.dictionary\": expected format \"i\", got \"u\"");
  EXPECT_EQ(difference(kInt, {.format = "f"}), "expected format \"i\", got \"f\"");
  EXPECT_EQ(difference({.format = "+l", .children = {kInt}},
                       {.format = "+l", .children = {{.format = "f"}}}),
            "field \"0\": expected format \"i\", got \"f\"");
}

TEST(VerifySameTypes, ComparesFormatsByMeaning) {
  const auto of_formats = [](const char* expected, const char* got) {
    const auto schema = [](const char* format) {
      SchemaNode field{.format = format, .name = "x"};
      if (field.format.starts_with("+w")) field.children = {kInt};
      if (field.format.starts_with("+u")) field.children = {kInt, kInt};
      return SchemaNode{.format = "+s", .children = {field}};
    };
    return difference(schema(expected), schema(got));
  };
  EXPECT_EQ(of_formats("d:10,2", "d:10,2,128"), "");
  EXPECT_EQ(of_formats("d:10,2,128", "d:10,2"), "");
  EXPECT_EQ(of_formats("w:16", "w:016"), "");
  EXPECT_EQ(of_formats("+w:3", "+w:03"), "");
  EXPECT_EQ(of_formats("+us:0,5", "+us:00,05"), "");
  EXPECT_EQ(of_formats("d:10,2", "d:10,2,64"),
            "field \"x\": expected format \"d:10,2\", got \"d:10,2,64\"");
  const std::pair<const char*, const char*> different[] = {
      {"d:10,2", "d:11,2"},   {"d:10,2", "d:10,3"},   {"w:16", "w:17"},
      {"+w:3", "+w:4"},       {"+us:0,5", "+us:5,0"}, {"+us:0,5", "+ud:0,5"},
      {"tss:UTC", "tsm:UTC"}, {"tss:UTC", "tss:"},    {"tss:UTC", "tss:+00:00"},
      {"tdD", "tdm"},         {"tts", "i"},           {"?", "??"},
  };
  for (const auto& [expected, got] : different) {
    EXPECT_NE(of_formats(expected, got), "") << expected << " and " << got;
  }
}

TEST(VerifySameTypes, IgnoresNamesMetadataAndFlags) {
  EXPECT_EQ(difference({.format = "+s", .children = {{.format = "i", .name = "a"}}},
                       {.format = "+s",
                        .name = "batch",
                        .metadata = {{"k", "v"}},
                        .children = {{.format = "i", .name = "b", .flags = 0}}}),
            "");
}

TEST(VerifySameTypes, RejectsMalformedSchemas) {
  Schema whole = make_schema(batch_of(kInt)).value();
  const auto message = [&](const auto& spoil) {
    Schema schema = make_schema(batch_of(kInt)).value();
    std::string text;
    {
      const ScopedRestore<ArrowSchema> restored(schema);
      spoil(*schema);
      const Status same = verify_same_types(*whole, *schema);
      EXPECT_EQ(code_of(same), EINVAL);
      EXPECT_EQ(code_of(verify_same_types(*schema, *whole)), EINVAL);
      if (!same) text = same.error().message();
    }
    return text;
  };
  EXPECT_EQ(message([](ArrowSchema& schema) { schema.children[1] = nullptr; }),
            "verify_same_types: the struct or a descendant is NULL");
  EXPECT_EQ(
      message([](ArrowSchema& schema) { schema.children = nullptr; }),
      "verify_same_types: the struct or a descendant has children NULL: expected a list of 2");
  EXPECT_EQ(message([](ArrowSchema& schema) { schema.children[0]->format = nullptr; }),
            "verify_same_types: the struct or a descendant has format NULL");
  // A schema that has itself as both children.
  Schema loop = make_schema({.format = "+s", .children = {kInt, kInt}}).value();
  const ScopedRestore<ArrowSchema> restored(loop);
  loop->children[0] = loop->children[1] = loop.get();
  EXPECT_EQ(code_of(verify_same_types(*loop, *loop)), EINVAL);
}

TEST(VerifySameTypes, AllocationFailureInErrorTextReturnsEnomem) {
  const Schema first = make_schema(batch_of(kInt)).value();
  const Schema second = make_schema(batch_of({.format = "u"})).value();
  const int64_t failed = fail_each_allocation([&](Injection& inject) {
    const Status same = inject([&] { return verify_same_types(*first, *second); });
    EXPECT_EQ(code_of(same), inject.fired() ? ENOMEM : EINVAL);
  });
  EXPECT_GT(failed, 0);
}

// --- The capacity of a builder ---

TEST(CapacityFor, CountsStructsAndBuffersOfEveryType) {
  for (const SchemaNode& node : every_type()) {
    for (const int64_t variadic : {0, 2}) {
      // SchemaAndArray shows that the capacity suffices; this checks that it is exact.
      const Schema schema = make_schema(node).value();
      const ArrayCapacity capacity = capacity_for(*schema, variadic).value();
      const SchemaAndArray pair(node);
      int64_t arrays = -1;
      int64_t buffers = variadic;
      const auto count = [&](auto& self, const ArrowArray& array) -> void {
        ++arrays;
        buffers += array.n_buffers;
        for (int64_t i = 0; i < array.n_children; ++i) self(self, *array.children[i]);
        if (array.dictionary != nullptr) self(self, *array.dictionary);
      };
      count(count, pair.array->array);
      EXPECT_EQ(capacity.arrays, arrays) << node.format;
      EXPECT_EQ(capacity.buffers, buffers) << node.format;
    }
  }
}

TEST(CapacityFor, RejectsUncountableSchema) {
  const auto message = [](const auto& spoil) {
    Schema schema = make_schema(batch_of(kInt)).value();
    spoil(*schema);
    const Result<ArrayCapacity> capacity = capacity_for(*schema);
    EXPECT_EQ(code_of(capacity), EINVAL);
    auto object = std::make_unique<int>(0);
    EXPECT_EQ(code_of(build_array_for(*schema, std::move(object))), EINVAL);
    EXPECT_NE(object, nullptr);  // still owned by the caller
    return capacity.error().message();
  };
  EXPECT_EQ(
      message([](ArrowSchema& schema) { schema.children[1]->format = "?"; }),
      "ArrowSchema.format: unknown: expected a format string of the C Data Interface, got \"?\"");
  EXPECT_EQ(message([](ArrowSchema& schema) { schema.children[1]->release(schema.children[1]); }),
            "capacity_for: the struct or a descendant is released");
  EXPECT_EQ(message([](ArrowSchema& schema) { schema.release(&schema); }),
            "capacity_for: the struct or a descendant is released");
  const Schema schema = make_schema(kInt).value();
  EXPECT_EQ(code_of(capacity_for(*schema, -1)), EINVAL);
  EXPECT_EQ(code_of(capacity_for(*schema, kMost)), EINVAL);
}

// --- Rules ---

TEST(Rules, ArrayBuffersLargeEnough) {
  SchemaAndArray pair({.format = "+w:2", .children = {kInt}});
  pair.child(0).length = 5;
  EXPECT_EQ(pair.faults(), "array.children[0]: array.buffers-large-enough\n");
}

TEST(Rules, ArrayDictionaryWhenEncoded) {
  SchemaAndArray pair({.format = "C", .dictionary = {kInt}});
  ArrowArray* dictionary = std::exchange(pair.root().dictionary, nullptr);
  EXPECT_EQ(pair.faults(), "array: array.dictionary-when-encoded\n");
  pair.root().dictionary = dictionary;
  pair.schema->dictionary = nullptr;
  EXPECT_EQ(pair.faults(), "array: array.dictionary-null-otherwise\n");
}

TEST(Rules, ArrayViewSizesBuffer) {
  SchemaAndArray pair({.format = "vz"});
  pair.root().n_buffers = 2;
  EXPECT_EQ(pair.faults(), "array: array.view-sizes-buffer\n");
}

}  // namespace
}  // namespace fletching
