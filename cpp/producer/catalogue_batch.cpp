// Record batches, and arrays without elements.
#include "builders.hpp"

namespace fletching::producer {
namespace {

constexpr int kWide = 1000;

Node RecordBatch() {
  Node colors = Dictionary(Int8({2, 0, kNull, 1, 2}), Utf8({"red", "green", "blue"}));
  Node batch =
      Struct(5, {NotNullable(Named("id", Int32({10, 11, 12, 13, 14}))),
                 WithMetadata({{"unit", "gr\u00f6\u00dfe"}, {"empty", ""}},
                              Named("na\u00efve", Utf8({"one", kNull, "", "four", "f\u00fcnf"}))),
                 Named("list", List({2, 0, kNull, 1, 3}, Int32({1, 2, kNull, 4, 5, 6}))),
                 Named("color", std::move(colors)),
                 Named("flag", Bool({true, false, kNull, true, true}))});
  return NotNullable(WithMetadata({{"origin", "fletching"}, {"version", "1"}}, std::move(batch)));
}

// One extension type that Arrow defines, and one that nobody knows.
Node ExtensionBatch() {
  Node uuid = FixedSizeBinary("w:16", {"0123456789abcdef", kNull, "fedcba9876543210"});
  return NotNullable(Struct(
      3, {WithMetadata({{"ARROW:extension:name", "arrow.uuid"}, {"ARROW:extension:metadata", ""}},
                       Named("uuid", std::move(uuid))),
          WithMetadata({{"ARROW:extension:name", "fletching.unknown"},
                        {"ARROW:extension:metadata", "{\"version\": 1}"}},
                       Named("unknown", Int32({1, kNull, 3})))}));
}

Node WideBatch() {
  std::vector<Node> columns;
  columns.reserve(kWide);
  for (int32_t i = 0; i < kWide; ++i) {
    columns.push_back(Named("c" + std::to_string(i), Int32({i, kNull, -i})));
  }
  return NotNullable(Struct(3, std::move(columns)));
}

// A child of every layout, without elements.
Node EveryLayoutEmpty() {
  return Struct(0, {Named("a", Int32({})), Named("b", Utf8({})), Named("bool", Bool({})),
                    Named("null", Null(0)), Named("large", LargeText("Z", {})),
                    Named("fixed", FixedSizeBinary("w:3", {})), Named("view", Views("vu", 0, {})),
                    Named("list", List({}, Int32({}))), Named("list_view", ListView({}, Int32({}))),
                    Named("fixed_list", FixedSizeList(2, {}, Int32({}))),
                    Named("map", Map({}, Utf8({}), Int32({}))),
                    Named("sparse", SparseUnion("+us:0", {}, {Named("x", Int32({}))})),
                    Named("dense", DenseUnion("+ud:0", {}, {}, {Named("x", Int32({}))})),
                    Named("runs", RunEndEncoded(0, Int32({}), Utf8({}))),
                    Named("dictionary", Dictionary(Int8({}), Utf8({})))});
}

}  // namespace

NamedNodes BatchCases() {
  NamedNodes cases;
  cases.emplace_back("zero_length", Struct(0, {Named("a", Int32({})), Named("b", Utf8({}))}));
  cases.emplace_back("zero_length_every_layout", EveryLayoutEmpty());
  cases.emplace_back("zero_length_null_buffers", EmptyAsNull(EveryLayoutEmpty()));
  cases.emplace_back("record_batch", RecordBatch());
  cases.emplace_back("record_batch_without_columns", NotNullable(Struct(3, {})));
  cases.emplace_back("extension_batch", ExtensionBatch());
  cases.emplace_back("wide_batch", WideBatch());
  return cases;
}

}  // namespace fletching::producer
