// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

#include "capsule.hpp"
#include "core.hpp"
#include "fletching/detail/text.hpp"
#include "fletching/extension.hpp"
#include "fletching/format.hpp"

namespace fletching::python {
namespace {

/// Types that convert into each other, so that a requested schema may ask for any of them.
enum class Family { kNull, kNumber, kBytes, kTime, kInterval, kList, kStruct, kMap, kUnion, kEnds };

struct TypeName {
  std::string_view name;
  Family family;
};

// By TypeId.
constexpr std::array<TypeName, 40> kTypes{{
    {"null", Family::kNull},
    {"bool", Family::kNumber},
    {"int8", Family::kNumber},
    {"uint8", Family::kNumber},
    {"int16", Family::kNumber},
    {"uint16", Family::kNumber},
    {"int32", Family::kNumber},
    {"uint32", Family::kNumber},
    {"int64", Family::kNumber},
    {"uint64", Family::kNumber},
    {"float16", Family::kNumber},
    {"float32", Family::kNumber},
    {"float64", Family::kNumber},
    {"binary", Family::kBytes},
    {"large_binary", Family::kBytes},
    {"binary_view", Family::kBytes},
    {"string", Family::kBytes},
    {"large_string", Family::kBytes},
    {"string_view", Family::kBytes},
    {"decimal", Family::kNumber},
    {"fixed_size_binary", Family::kBytes},
    {"date32", Family::kTime},
    {"date64", Family::kTime},
    {"time32", Family::kTime},
    {"time64", Family::kTime},
    {"timestamp", Family::kTime},
    {"duration", Family::kInterval},
    {"interval_months", Family::kInterval},
    {"interval_day_time", Family::kInterval},
    {"interval_month_day_nano", Family::kInterval},
    {"list", Family::kList},
    {"large_list", Family::kList},
    {"list_view", Family::kList},
    {"large_list_view", Family::kList},
    {"fixed_size_list", Family::kList},
    {"struct", Family::kStruct},
    {"map", Family::kMap},
    {"dense_union", Family::kUnion},
    {"sparse_union", Family::kUnion},
    {"run_end_encoded", Family::kEnds},
}};
static_assert(static_cast<size_t>(TypeId::kRunEndEncoded) + 1 == kTypes.size());

constexpr std::array<std::string_view, 5> kUnits{"", "s", "ms", "us", "ns"};  // by TimeUnit

const TypeName& known(const Format& format) { return kTypes[static_cast<size_t>(format.id)]; }

std::string parameters(const Format& format) {
  switch (format.id) {
    case TypeId::kDecimal:
      return std::to_string(format.bit_width)
          .append("(")
          .append(std::to_string(format.precision))
          .append(", ")
          .append(std::to_string(format.scale))
          .append(")");
    case TypeId::kFixedSizeBinary:
    case TypeId::kFixedSizeList:
      return std::string("(").append(std::to_string(format.size)).append(")");
    default:
      break;
  }
  if (format.unit == TimeUnit::kNone) return "";
  std::string text("[");
  text.append(kUnits[static_cast<size_t>(format.unit)]);
  if (!format.timezone.empty()) text.append(", ").append(format.timezone);
  return text.append("]");
}

// Limits for readability: deep or wide types are abbreviated.
constexpr int kMostLevels = 4;
constexpr int64_t kMostFields = 8;

std::string text_of(const ArrowSchema* schema, int level);

std::string fields_of(const ArrowSchema& schema, bool names, int level) {
  if (level == kMostLevels) return "<...>";
  std::string text("<");
  for (int64_t i = 0; i < schema.n_children; ++i) {
    if (i > 0) text.append(", ");
    if (i == kMostFields) {
      text.append("...");
      break;
    }
    const ArrowSchema* field = schema.children == nullptr ? nullptr : schema.children[i];
    const bool is_named = field != nullptr && field->name != nullptr && *field->name != '\0';
    if (names && is_named) text.append(field->name).append(": ");
    text.append(text_of(field, level + 1));
  }
  return text.append(">");
}

std::string storage_of(const ArrowSchema* schema, int level);

std::string text_of(const ArrowSchema* schema, int level) {
  if (schema == nullptr || schema->release == nullptr) return "released";
  std::string storage = storage_of(schema, level);
  const Result<Extension> extension = find_extension(*schema);
  if (!extension.ok() || extension->name.empty()) return storage;
  return "extension<" + detail::printable(extension->name) + ": " + storage + ">";
}

std::string storage_of(const ArrowSchema* schema, int level) {
  const Result<Format> format = parse_format(schema->format);
  if (!format) {
    return std::string("unknown(") + (schema->format == nullptr ? "NULL" : schema->format) + ")";
  }
  if (schema->dictionary != nullptr) {
    return "dictionary<" + std::string(known(*format).name) + ", " +
           text_of(schema->dictionary, level + 1) + ">";
  }
  std::string text(known(*format).name);
  text.append(parameters(*format));
  if (format->n_children == 0) return text;
  return text + fields_of(*schema, known(*format).family == Family::kStruct, level);
}

/// Returns the value type; for dictionaries and run-end encoded types, the type of their values.
const ArrowSchema* value_type(const ArrowSchema* schema) {
  while (schema != nullptr && schema->release != nullptr) {
    if (schema->dictionary != nullptr) {
      schema = schema->dictionary;
    } else if (schema->format != nullptr && std::string_view(schema->format) == "+r" &&
               schema->n_children == 2 && schema->children != nullptr) {
      schema = schema->children[1];
    } else {
      return schema;
    }
  }
  return nullptr;
}

bool fits(const ArrowSchema* requested, const ArrowSchema* own, int level = 0) {
  requested = value_type(requested);
  own = value_type(own);
  if (requested == nullptr || own == nullptr || level == 64) return false;
  const Result<Format> wanted = parse_format(requested->format);
  const Result<Format> there = parse_format(own->format);
  if (!wanted || !there || known(*wanted).family != known(*there).family) return false;
  if (requested->n_children != own->n_children) return false;
  for (int64_t i = 0; i < own->n_children; ++i) {
    if (requested->children == nullptr || own->children == nullptr) return false;
    if (!fits(requested->children[i], own->children[i], level + 1)) return false;
  }
  return true;
}

}  // namespace

std::string type_text(const ArrowSchema& schema) { return text_of(&schema, 0); }

void check_requested(nb::handle requested, const ArrowSchema& own, const char* method) {
  if (requested.is_none()) return;
  const auto* schema = look_into<ArrowSchema>(requested, method);
  unwrap(check_schema(*schema, method));
  if (fits(schema, &own)) return;
  raise(Error(EINVAL, std::string(method) + ": requested_schema does not fit the data: expected " +
                          type_text(own) + ", got " + type_text(*schema)));
}

}  // namespace fletching::python
