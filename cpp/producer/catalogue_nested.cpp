// Cases with children and dictionaries.
#include "builders.hpp"

namespace fletching::producer {
namespace {

constexpr int kDepth = 48;

Node nested_struct() {
  Node inner = structure({true, false, true}, {named("x", int64({7, kNull, -7})),
                                               named("y", utf8({"p", kNull, "\u03c0"}))});
  return structure({true, true, false},
                   {named("a", int32({1, kNull, 3})), named("b", boolean({true, kNull, false})),
                    named("inner", std::move(inner))});
}

Node struct_with_offset() {
  return skip(1,
              structure({true, true, false, true},
                        {named("a", skip(2, int32({0, 1, 2, 3, kNull, 5}))),
                         named("b", skip(3, utf8({"a", "bb", kNull, "dddd", "", kNull, "ggg"})))}));
}

// Lists and structs alternately, with one element each.
Node deep(int levels) {
  Node node = int32({42});
  for (int level = 1; level < levels; ++level) {
    node =
        level % 2 == 1 ? list({1}, std::move(node)) : structure(1, {named("s", std::move(node))});
  }
  return node;
}

void add_lists(NamedNodes& cases) {
  const Values<int32_t> lengths = {2, 0, kNull, 3};
  const Values<Range> ranges = {Range{3, 2}, kNull, Range{0, 4}, Range{5, 0}, Range{0, 1}};
  const Node items = int32({1, 2, 3, kNull, 5});
  cases.emplace_back("list", list(lengths, items));
  cases.emplace_back("large_list", large_list(lengths, items));
  cases.emplace_back("list_view", list_view(ranges, items));
  cases.emplace_back("large_list_view", large_list_view(ranges, items));
  const Node six = int32({1, 2, kNull, 4, 5, 6, 7, 8});
  cases.emplace_back("fixed_size_list", fixed_size_list(2, {true, true, false, true}, six));
  cases.emplace_back("list_of_utf8", list(lengths, utf8({"a", "", kNull, "dd", "e"})));
  cases.emplace_back("list_slice", shorten(1, skip(1, list({2, 0, kNull, 1, 2}, items))));
  cases.emplace_back("list_of_slice", list({1, 2}, skip(2, items)));
  cases.emplace_back("large_list_slice", skip(3, large_list(lengths, items)));
  cases.emplace_back("list_view_slice", shorten(1, skip(1, list_view(ranges, items))));
  cases.emplace_back(
      "fixed_size_list_slice",
      shorten(1, skip(1, fixed_size_list(2, {true, true, false, true},
                                         skip(1, int32({0, 1, 2, kNull, 4, 5, 6, 7, 8}))))));
}

void add_structs(NamedNodes& cases) {
  cases.emplace_back("struct", nested_struct());
  cases.emplace_back("struct_offset", struct_with_offset());
  cases.emplace_back("struct_slice", shorten(1, struct_with_offset()));
  cases.emplace_back("struct_without_children", structure({true, false, true}, {}));
  cases.emplace_back("deep", deep(kDepth));
}

void add_maps(NamedNodes& cases) {
  const Values<int32_t> lengths = {2, kNull, 0, 1};
  const Node keys = utf8({"a", "b", "c"});
  const Node values = int32({1, kNull, 3});
  cases.emplace_back("map", map(lengths, keys, values));
  cases.emplace_back("map_sorted",
                     with_flag(ARROW_FLAG_MAP_KEYS_SORTED, map(lengths, keys, values)));
  cases.emplace_back("map_slice", skip(1, map(lengths, keys, values)));
}

void add_unions(NamedNodes& cases) {
  const std::vector<int8_t> types = {0, 1, 1, 0};
  const std::vector<Node> sparse = {named("x", int32({1, 0, 0, kNull})),
                                    named("y", utf8({"", "b", kNull, ""}))};
  const std::vector<Node> dense = {named("x", int32({1, kNull})), named("y", utf8({"b", kNull}))};
  cases.emplace_back("sparse_union", sparse_union("+us:0,1", types, sparse));
  cases.emplace_back("dense_union", dense_union("+ud:0,1", types, {0, 0, 1, 1}, dense));
  // Type ids that differ from the child indices.
  cases.emplace_back("dense_union_ids", dense_union("+ud:7,5", {7, 5, 5, 7}, {0, 0, 1, 1}, dense));
  cases.emplace_back("sparse_union_slice",
                     shorten(1, skip(1, sparse_union("+us:0,1", types, sparse))));
  cases.emplace_back("dense_union_slice",
                     shorten(1, skip(1, dense_union("+ud:0,1", types, {0, 0, 1, 1}, dense))));
}

void add_run_end_encoded(NamedNodes& cases) {
  const Node values = utf8({"one", kNull, "three"});
  const Node ends = int32({2, 3, 7});
  cases.emplace_back("run_end_int16", run_end_encoded(7, fixed<int16_t>("s", {2, 3, 7}), values));
  cases.emplace_back("run_end_int32", run_end_encoded(7, ends, values));
  cases.emplace_back("run_end_int64", run_end_encoded(7, int64({2, 3, 7}), values));
  cases.emplace_back("run_end_slice", shorten(1, skip(2, run_end_encoded(7, ends, values))));
}

Node colors(Node indices) { return dictionary(std::move(indices), utf8({"red", "green", "blue"})); }

// Dictionary indices of type T into the three colors.
template <class T>
Node colors_by(std::string format) {
  return colors(fixed<T>(std::move(format), {T{2}, T{0}, kNull, T{1}, T{2}}));
}

void add_dictionaries(NamedNodes& cases) {
  cases.emplace_back("dictionary", colors_by<int8_t>("c"));
  cases.emplace_back("dictionary_int16", colors_by<int16_t>("s"));
  cases.emplace_back("dictionary_int32", colors_by<int32_t>("i"));
  cases.emplace_back("dictionary_int64", colors_by<int64_t>("l"));
  cases.emplace_back("dictionary_uint8", colors_by<uint8_t>("C"));
  cases.emplace_back("dictionary_uint16", colors_by<uint16_t>("S"));
  cases.emplace_back("dictionary_uint32", colors_by<uint32_t>("I"));
  cases.emplace_back("dictionary_uint64", colors_by<uint64_t>("L"));
  cases.emplace_back("dictionary_ordered",
                     with_flag(ARROW_FLAG_DICTIONARY_ORDERED, colors_by<int8_t>("c")));
  cases.emplace_back("dictionary_slice", shorten(1, skip(1, colors_by<int32_t>("i"))));
  cases.emplace_back("dictionary_of_slice",
                     dictionary(int8({1, kNull, 0}), skip(1, utf8({"skipped", "red", "green"}))));
  cases.emplace_back("dictionary_of_nulls", dictionary(int8({1, 0}), utf8({"a", kNull})));
  cases.emplace_back(
      "dictionary_of_struct",
      dictionary(int8({1, kNull, 0}), structure(2, {named("color", colors(int32({2, 1}))),
                                                    named("shade", int64({10, kNull}))})));
  cases.emplace_back("dictionary_of_list",
                     dictionary(int32({1, kNull, 0}), list({2, 1}, colors(int8({2, kNull, 0})))));
  cases.emplace_back("list_of_dictionary", list({2, kNull, 1}, colors(int8({2, 0, 1}))));
}

}  // namespace

NamedNodes nested_cases() {
  NamedNodes cases;
  add_lists(cases);
  add_structs(cases);
  add_maps(cases);
  add_unions(cases);
  add_run_end_encoded(cases);
  add_dictionaries(cases);
  return cases;
}

}  // namespace fletching::producer
