// Record batches and empty arrays.
#include "builders.hpp"

namespace fletching::producer {
namespace {

constexpr int kWide = 1000;

Node record_batch() {
  Node colors = dictionary(int8({2, 0, kNull, 1, 2}), utf8({"red", "green", "blue"}));
  Node batch = structure(
      5, {not_nullable(named("id", int32({10, 11, 12, 13, 14}))),
          with_metadata({{"unit", "gr\u00f6\u00dfe"}, {"empty", ""}},
                        named("na\u00efve", utf8({"one", kNull, "", "four", "f\u00fcnf"}))),
          named("list", list({2, 0, kNull, 1, 3}, int32({1, 2, kNull, 4, 5, 6}))),
          named("color", std::move(colors)),
          named("flag", boolean({true, false, kNull, true, true}))});
  return not_nullable(with_metadata({{"origin", "fletching"}, {"version", "1"}}, std::move(batch)));
}

// A canonical extension type and an unknown one.
Node extension_batch() {
  Node uuid = fixed_size_binary("w:16", {"0123456789abcdef", kNull, "fedcba9876543210"});
  return not_nullable(structure(
      3, {with_metadata({{"ARROW:extension:name", "arrow.uuid"}, {"ARROW:extension:metadata", ""}},
                        named("uuid", std::move(uuid))),
          with_metadata({{"ARROW:extension:name", "fletching.unknown"},
                         {"ARROW:extension:metadata", "{\"version\": 1}"}},
                        named("unknown", int32({1, kNull, 3})))}));
}

Node wide_batch() {
  std::vector<Node> columns;
  columns.reserve(kWide);
  for (int32_t i = 0; i < kWide; ++i) {
    columns.push_back(named("c" + std::to_string(i), int32({i, kNull, -i})));
  }
  return not_nullable(structure(3, std::move(columns)));
}

// One empty child of every layout.
Node every_layout_empty() {
  return structure(
      0, {named("a", int32({})), named("b", utf8({})), named("bool", boolean({})),
          named("null", null(0)), named("large", large_text("Z", {})),
          named("fixed", fixed_size_binary("w:3", {})), named("view", view_array("vu", 0, {})),
          named("list", list({}, int32({}))), named("list_view", list_view({}, int32({}))),
          named("fixed_list", fixed_size_list(2, {}, int32({}))),
          named("map", map({}, utf8({}), int32({}))),
          named("sparse", sparse_union("+us:0", {}, {named("x", int32({}))})),
          named("dense", dense_union("+ud:0", {}, {}, {named("x", int32({}))})),
          named("runs", run_end_encoded(0, int32({}), utf8({}))),
          named("dictionary", dictionary(int8({}), utf8({})))});
}

}  // namespace

NamedNodes batch_cases() {
  NamedNodes cases;
  cases.emplace_back("zero_length", structure(0, {named("a", int32({})), named("b", utf8({}))}));
  cases.emplace_back("zero_length_every_layout", every_layout_empty());
  cases.emplace_back("zero_length_null_buffers", empty_as_null(every_layout_empty()));
  cases.emplace_back("record_batch", record_batch());
  cases.emplace_back("record_batch_without_columns", not_nullable(structure(3, {})));
  cases.emplace_back("extension_batch", extension_batch());
  cases.emplace_back("wide_batch", wide_batch());
  return cases;
}

}  // namespace fletching::producer
