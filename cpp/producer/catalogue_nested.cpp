// Cases with children and dictionaries.
#include "builders.hpp"

namespace fletching::producer {
namespace {

constexpr int kDepth = 48;

Node NestedStruct() {
  Node inner = Struct({true, false, true}, {Named("x", Int64({7, kNull, -7})),
                                            Named("y", Utf8({"p", kNull, "\u03c0"}))});
  return Struct({true, true, false},
                {Named("a", Int32({1, kNull, 3})), Named("b", Bool({true, kNull, false})),
                 Named("inner", std::move(inner))});
}

Node StructWithOffset() {
  return Skip(1, Struct({true, true, false, true},
                        {Named("a", Skip(2, Int32({0, 1, 2, 3, kNull, 5}))),
                         Named("b", Skip(3, Utf8({"a", "bb", kNull, "dddd", "", kNull, "ggg"})))}));
}

// Lists and structs by turns, one element in each.
Node Deep(int levels) {
  Node node = Int32({42});
  for (int level = 1; level < levels; ++level) {
    node = level % 2 == 1 ? List({1}, std::move(node)) : Struct(1, {Named("s", std::move(node))});
  }
  return node;
}

void AddLists(NamedNodes& cases) {
  const Values<int32_t> lengths = {2, 0, kNull, 3};
  const Values<Range> ranges = {Range{3, 2}, kNull, Range{0, 4}, Range{5, 0}, Range{0, 1}};
  const Node items = Int32({1, 2, 3, kNull, 5});
  cases.emplace_back("list", List(lengths, items));
  cases.emplace_back("large_list", LargeList(lengths, items));
  cases.emplace_back("list_view", ListView(ranges, items));
  cases.emplace_back("large_list_view", LargeListView(ranges, items));
  const Node six = Int32({1, 2, kNull, 4, 5, 6, 7, 8});
  cases.emplace_back("fixed_size_list", FixedSizeList(2, {true, true, false, true}, six));
  cases.emplace_back("list_of_utf8", List(lengths, Utf8({"a", "", kNull, "dd", "e"})));
  cases.emplace_back("list_slice", Shorten(1, Skip(1, List({2, 0, kNull, 1, 2}, items))));
  cases.emplace_back("list_of_slice", List({1, 2}, Skip(2, items)));
  cases.emplace_back("large_list_slice", Skip(3, LargeList(lengths, items)));
  cases.emplace_back("list_view_slice", Shorten(1, Skip(1, ListView(ranges, items))));
  cases.emplace_back(
      "fixed_size_list_slice",
      Shorten(1, Skip(1, FixedSizeList(2, {true, true, false, true},
                                       Skip(1, Int32({0, 1, 2, kNull, 4, 5, 6, 7, 8}))))));
}

void AddStructs(NamedNodes& cases) {
  cases.emplace_back("struct", NestedStruct());
  cases.emplace_back("struct_offset", StructWithOffset());
  cases.emplace_back("struct_slice", Shorten(1, StructWithOffset()));
  cases.emplace_back("struct_without_children", Struct({true, false, true}, {}));
  cases.emplace_back("deep", Deep(kDepth));
}

void AddMaps(NamedNodes& cases) {
  const Values<int32_t> lengths = {2, kNull, 0, 1};
  const Node keys = Utf8({"a", "b", "c"});
  const Node values = Int32({1, kNull, 3});
  cases.emplace_back("map", Map(lengths, keys, values));
  cases.emplace_back("map_sorted",
                     WithFlag(ARROW_FLAG_MAP_KEYS_SORTED, Map(lengths, keys, values)));
  cases.emplace_back("map_slice", Skip(1, Map(lengths, keys, values)));
}

void AddUnions(NamedNodes& cases) {
  const std::vector<int8_t> types = {0, 1, 1, 0};
  const std::vector<Node> sparse = {Named("x", Int32({1, 0, 0, kNull})),
                                    Named("y", Utf8({"", "b", kNull, ""}))};
  const std::vector<Node> dense = {Named("x", Int32({1, kNull})), Named("y", Utf8({"b", kNull}))};
  cases.emplace_back("sparse_union", SparseUnion("+us:0,1", types, sparse));
  cases.emplace_back("dense_union", DenseUnion("+ud:0,1", types, {0, 0, 1, 1}, dense));
  // Type ids that are not the indices of the children.
  cases.emplace_back("dense_union_ids", DenseUnion("+ud:7,5", {7, 5, 5, 7}, {0, 0, 1, 1}, dense));
  cases.emplace_back("sparse_union_slice",
                     Shorten(1, Skip(1, SparseUnion("+us:0,1", types, sparse))));
  cases.emplace_back("dense_union_slice",
                     Shorten(1, Skip(1, DenseUnion("+ud:0,1", types, {0, 0, 1, 1}, dense))));
}

void AddRunEndEncoded(NamedNodes& cases) {
  const Node values = Utf8({"one", kNull, "three"});
  const Node ends = Int32({2, 3, 7});
  cases.emplace_back("run_end_int16", RunEndEncoded(7, Fixed<int16_t>("s", {2, 3, 7}), values));
  cases.emplace_back("run_end_int32", RunEndEncoded(7, ends, values));
  cases.emplace_back("run_end_int64", RunEndEncoded(7, Int64({2, 3, 7}), values));
  cases.emplace_back("run_end_slice", Shorten(1, Skip(2, RunEndEncoded(7, ends, values))));
}

Node Colors(Node indices) { return Dictionary(std::move(indices), Utf8({"red", "green", "blue"})); }

// Indices of type T into the three colors.
template <class T>
Node ColorsBy(std::string format) {
  return Colors(Fixed<T>(std::move(format), {T{2}, T{0}, kNull, T{1}, T{2}}));
}

void AddDictionaries(NamedNodes& cases) {
  cases.emplace_back("dictionary", ColorsBy<int8_t>("c"));
  cases.emplace_back("dictionary_int16", ColorsBy<int16_t>("s"));
  cases.emplace_back("dictionary_int32", ColorsBy<int32_t>("i"));
  cases.emplace_back("dictionary_int64", ColorsBy<int64_t>("l"));
  cases.emplace_back("dictionary_uint8", ColorsBy<uint8_t>("C"));
  cases.emplace_back("dictionary_uint16", ColorsBy<uint16_t>("S"));
  cases.emplace_back("dictionary_uint32", ColorsBy<uint32_t>("I"));
  cases.emplace_back("dictionary_uint64", ColorsBy<uint64_t>("L"));
  cases.emplace_back("dictionary_ordered",
                     WithFlag(ARROW_FLAG_DICTIONARY_ORDERED, ColorsBy<int8_t>("c")));
  cases.emplace_back("dictionary_slice", Shorten(1, Skip(1, ColorsBy<int32_t>("i"))));
  cases.emplace_back("dictionary_of_slice",
                     Dictionary(Int8({1, kNull, 0}), Skip(1, Utf8({"skipped", "red", "green"}))));
  cases.emplace_back("dictionary_of_nulls", Dictionary(Int8({1, 0}), Utf8({"a", kNull})));
  cases.emplace_back(
      "dictionary_of_struct",
      Dictionary(Int8({1, kNull, 0}), Struct(2, {Named("color", Colors(Int32({2, 1}))),
                                                 Named("shade", Int64({10, kNull}))})));
  cases.emplace_back("dictionary_of_list",
                     Dictionary(Int32({1, kNull, 0}), List({2, 1}, Colors(Int8({2, kNull, 0})))));
  cases.emplace_back("list_of_dictionary", List({2, kNull, 1}, Colors(Int8({2, 0, 1}))));
}

}  // namespace

NamedNodes NestedCases() {
  NamedNodes cases;
  AddLists(cases);
  AddStructs(cases);
  AddMaps(cases);
  AddUnions(cases);
  AddRunEndEncoded(cases);
  AddDictionaries(cases);
  return cases;
}

}  // namespace fletching::producer
