// The checks of the CUDA Array Interface: the shared vectors, type strings and strides.
#include "fletching/cuda_array_interface.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fletching::testing {
namespace {

namespace cai = cuda_array_interface;
using Json = nlohmann::ordered_json;

constexpr std::string_view kPrefix = "cuda-array-interface.";

/// Thrown for a dictionary that an Interface cannot represent.
struct Untyped {};

const Json* find(const Json& value, const char* key) {
  const auto found = value.is_object() ? value.find(key) : value.end();
  return found == value.end() ? nullptr : &*found;
}

template <typename Integer>
Integer integer(const Json& value) {
  // Integers that a double cannot represent are written as text.
  const Json* digits = find(value, "integer");
  if (digits == nullptr && !value.is_number_integer()) throw Untyped{};
  const Json& written = digits != nullptr ? *digits : value;
  const std::string text = written.is_string() ? written.get<std::string>() : written.dump();
  Integer number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) throw Untyped{};
  return number;
}

const std::string& text_of(const Json& value) {
  if (!value.is_string()) throw Untyped{};
  return value.get_ref<const std::string&>();
}

const Json& tuple_of(const Json& value) {
  if (!value.is_array()) throw Untyped{};
  return value;
}
const Json& tuple_of(Json&& value) = delete;  // the reference would dangle

/// A dictionary of the vectors as an Interface, with the memory that it points to.
class Dictionary {
 public:
  explicit Dictionary(const Json& value) {
    if (!value.is_object()) throw Untyped{};
    for (const cai::Key& key : cai::kKeys) {
      if (key.required && !value.contains(key.name)) throw Untyped{};
    }
    for (const auto& [key, one] : value.items()) read(key, one);
  }

  [[nodiscard]] const cai::Interface& says() const { return says_; }

 private:
  void read(std::string_view key, const Json& value) {
    const bool none = value.is_null();
    if (key == "shape") {
      says_.shape = integers(value);
    } else if (key == "typestr") {
      says_.typestr = text_of(value);
    } else if (key == "data") {
      read_data(tuple_of(value));
    } else if (key == "version") {
      says_.version = integer<std::int64_t>(value);
    } else if (key == "strides") {
      if (!none) says_.strides = integers(value);
    } else if (key == "descr") {
      says_.descr = fields(value);
    } else if (key == "mask") {
      if (!none) read_mask(value);
    } else if (key == "stream") {
      if (!none) says_.stream = integer<std::int64_t>(value);
    } else {
      throw Untyped{};
    }
  }

  void read_data(const Json& pair) {
    if (pair.size() != 2 || !pair[1].is_boolean()) throw Untyped{};
    says_.pointer = integer<std::uint64_t>(pair[0]);
    says_.read_only = pair[1].get<bool>();
  }

  void read_mask(const Json& value) {
    const Json* object = find(value, "object");
    if (object == nullptr) throw Untyped{};
    if (*object == "self") {
      says_.mask = &says_;
      return;
    }
    mask_ = std::make_unique<Dictionary>(*object);
    says_.mask = &mask_->says();
  }

  std::span<const std::int64_t> integers(const Json& value) {
    std::vector<std::int64_t>& kept = integers_.emplace_back();
    for (const Json& element : tuple_of(value)) kept.push_back(integer<std::int64_t>(element));
    return kept;
  }

  std::span<const cai::Field> fields(const Json& value) {
    const Json* list = find(value, "list");
    if (list == nullptr) throw Untyped{};
    std::vector<cai::Field>& kept = fields_.emplace_back();
    for (const Json& element : *list) kept.push_back(field(tuple_of(element)));
    return kept;
  }

  cai::Field field(const Json& parts) {
    if (parts.size() != 2 && parts.size() != 3) throw Untyped{};
    cai::Field field;
    const bool titled = parts[0].is_array() && parts[0].size() == 2;
    if (titled) text_of(parts[0][0]);
    field.name = text_of(titled ? parts[0][1] : parts[0]);
    if (parts[1].is_string()) {
      field.typestr = text_of(parts[1]);
    } else {
      const std::span<const cai::Field> inner = fields(parts[1]);
      field.fields = inner.data();
      field.field_count = inner.size();
    }
    if (parts.size() == 3) field.shape = integers(parts[2]);
    return field;
  }

  cai::Interface says_;
  std::deque<std::vector<std::int64_t>> integers_;
  std::deque<std::vector<cai::Field>> fields_;
  std::unique_ptr<Dictionary> mask_;
};

struct Vector {
  std::string name;
  std::vector<std::string> breaks;
  std::unique_ptr<Dictionary> dictionary;  // NULL if an Interface cannot represent it
  bool untyped;                            // as stated in the file
};

std::vector<Vector> load() {
  // Never freed: views into the file's text are kept.
  static const Json file = [] {
    std::ifstream stream(FLETCHING_CUDA_ARRAY_INTERFACE_VECTORS);
    if (!stream) throw std::runtime_error("no " FLETCHING_CUDA_ARRAY_INTERFACE_VECTORS);
    return Json::parse(stream);
  }();
  std::vector<Vector> vectors;
  for (const Json& entry : file.at("vectors")) {
    Vector& vector = vectors.emplace_back();
    vector.name = text_of(entry.at("name"));
    vector.untyped = entry.contains("untyped");
    for (const Json& line : entry.at("breaks")) vector.breaks.push_back(text_of(line));
    try {
      vector.dictionary = std::make_unique<Dictionary>(entry.at("interface"));
    } catch (const Untyped&) {
      vector.dictionary = nullptr;
    }
  }
  return vectors;
}

const std::vector<Vector>& vectors() {
  static const std::vector<Vector> loaded = load();
  return loaded;
}

/// The findings of `check`, in the vectors' format.
std::vector<std::string> broken(const Dictionary& dictionary,
                                std::span<const cai::Rule> rules = cai::kRules) {
  std::vector<std::string> lines;
  for (const cai::Violation& violation : cai::check(dictionary.says(), rules)) {
    EXPECT_FALSE(violation.found.empty()) << violation.rule;
    EXPECT_FALSE(violation.hint.empty()) << violation.rule;
    lines.push_back(std::string(violation.rule.substr(kPrefix.size())) + " " + violation.key);
  }
  return lines;
}

TEST(CudaArrayInterface, FindsBrokenRulesOfVectors) {
  std::set<std::int64_t> versions;
  for (const Vector& vector : vectors()) {
    if (vector.dictionary == nullptr) continue;
    EXPECT_EQ(broken(*vector.dictionary), vector.breaks) << vector.name;
    versions.insert(vector.dictionary->says().version);
  }
  for (std::int64_t version = 0; version <= cai::kVersion; ++version) {
    EXPECT_TRUE(versions.contains(version)) << "no vector is of version " << version;
  }
}

TEST(CudaArrayInterface, SkipsOnlyUntypedVectors) {
  EXPECT_GE(vectors().size(), 60U);
  for (const Vector& vector : vectors()) {
    EXPECT_EQ(vector.dictionary == nullptr, vector.untyped) << vector.name;
  }
}

TEST(CudaArrayInterface, EachRuleIsNeededByVector) {
  for (const cai::Rule& rule : cai::kRules) {
    std::vector<cai::Rule> others;
    std::ranges::copy_if(cai::kRules, std::back_inserter(others),
                         [&](const cai::Rule& other) { return other.id != rule.id; });
    const bool noticed = std::ranges::any_of(vectors(), [&](const Vector& vector) {
      return vector.dictionary != nullptr && broken(*vector.dictionary, others) != vector.breaks;
    });
    EXPECT_TRUE(noticed) << rule.id;
  }
}

/// Expects that the vectors contain breaks of this check and that only those are found.
void expect_found(std::string_view check) {
  const auto is_in = [&](const std::vector<std::string>& lines) {
    return std::ranges::any_of(
        lines, [&](std::string_view line) { return line.substr(0, line.find(' ')) == check; });
  };
  int vectors_of_it = 0;
  for (const Vector& vector : vectors()) {
    if (vector.dictionary == nullptr) continue;
    EXPECT_EQ(is_in(broken(*vector.dictionary)), is_in(vector.breaks)) << vector.name;
    if (is_in(vector.breaks)) ++vectors_of_it;
  }
  EXPECT_GT(vectors_of_it, 0) << check;
}

// Only the part of each rule that a struct can break; the value types are Python's.
TEST(Rules, CaiShapeTuple) { expect_found("shape-sizes"); }

TEST(Rules, CaiTypestr) {
  for (const char* check : {"typestr-grammar", "typestr-order", "typestr-size"}) {
    expect_found(check);
  }
}

TEST(Rules, CaiVersion) { expect_found("version-known"); }

TEST(Rules, CaiStrides) { expect_found("strides-length"); }

TEST(Rules, CaiMaskShape) { expect_found("mask-shape"); }

TEST(Rules, CaiDescr) {
  expect_found("descr-list");
  expect_found("descr-size");
}

/// The rules broken by opaque items of zero bytes with these fields.
std::vector<std::string> broken_by(std::span<const cai::Field> fields) {
  cai::Interface says;
  says.typestr = "|V0";
  says.descr = fields;
  std::vector<std::string> rules;
  for (const cai::Violation& violation : cai::check(says)) rules.emplace_back(violation.rule);
  return rules;
}

const std::vector<std::string> kNone;
const std::vector<std::string> kDescrList{"cuda-array-interface.descr-list"};

TEST(CudaArrayInterface, RejectsSelfContainingFields) {
  std::array<cai::Field, 2> tree{};
  for (cai::Field& field : tree) {
    field.fields = tree.data();
    field.field_count = tree.size();
  }
  EXPECT_EQ(broken_by(tree), kDescrList);
}

TEST(CudaArrayInterface, BoundsLists) {
  // Each field is the list of the next one: 32 levels of lists.
  std::array<cai::Field, 33> chain{};
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    chain[i].fields = &chain[i + 1];
    chain[i].field_count = 1;
  }
  chain.back().typestr = "|V0";
  EXPECT_EQ(broken_by(std::span(chain).first(1)), kNone);
  cai::Field around;
  around.fields = chain.data();
  around.field_count = 1;
  EXPECT_EQ(broken_by(std::span(&around, 1)), kDescrList);
}

TEST(CudaArrayInterface, BoundsFields) {
  cai::Field field;
  field.typestr = "|V0";
  EXPECT_EQ(broken_by(std::vector<cai::Field>(4096, field)), kNone);
  EXPECT_EQ(broken_by(std::vector<cai::Field>(4097, field)), kDescrList);
}

TEST(Typestr, RoundTripsText) {
  constexpr std::array<std::string_view, 12> kTexts{"|t12", "|b1",      "<i4", ">u8", "<f2", "<c16",
                                                    "<m8",  "<M8[25s]", "|O",  "|S0", "<U5", "|V2"};
  for (const std::string_view text : kTexts) {
    const std::optional<cai::Typestr> parts = cai::parse_typestr(text);
    EXPECT_EQ(parts ? cai::format_typestr(*parts) : "", text);
  }
}

TEST(Typestr, ParsesParts) {
  constexpr std::optional<cai::Typestr> kTime = cai::parse_typestr("<M8[25s]");
  static_assert(kTime && kTime->order == cai::kLittleEndian && kTime->kind == 'M');
  static_assert(kTime->number == 8U && kTime->multiple == 25 && kTime->unit == "s");
  static_assert(kTime->item_bytes() == 8);
  static_assert(cai::parse_typestr("|t12")->item_bytes() == 2);
  static_assert(cai::parse_typestr("<U5")->item_bytes() == 20);
  static_assert(cai::parse_typestr("|O")->item_bytes() == 8);
  static_assert(!cai::parse_typestr("<M8[1000000000s]"));
  static_assert(!cai::find_kind('q') && cai::find_kind('f')->numeric);
}

TEST(Strides, MatchContiguousArray) {
  constexpr std::array<std::int64_t, 3> kShape{10, 20, 30};
  const std::vector<std::int64_t> strides = cai::contiguous_strides(kShape, 8);
  EXPECT_EQ(strides, (std::vector<std::int64_t>{4800, 240, 8}));
  EXPECT_TRUE(cai::is_contiguous(kShape, strides, 8));
  EXPECT_FALSE(cai::is_contiguous(kShape, strides, 4));
  EXPECT_FALSE(cai::is_contiguous(kShape, std::span(strides).first(2), 8));
}

TEST(Strides, OfUnitDimensionsAreIgnored) {
  constexpr std::array<std::int64_t, 2> kStrides{77, 4};
  EXPECT_TRUE(cai::is_contiguous(std::array<std::int64_t, 2>{1, 3}, kStrides, 4));
  EXPECT_TRUE(cai::is_contiguous(std::array<std::int64_t, 2>{0, 3}, kStrides, 4));
  EXPECT_FALSE(cai::is_contiguous(std::array<std::int64_t, 2>{2, 3}, kStrides, 4));
}

}  // namespace
}  // namespace fletching::testing
