// SPDX-License-Identifier: Apache-2.0
#include "rebuilt.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

namespace fletching::conformance {
namespace {

constexpr std::string_view kDefaultWidth = ",128";
constexpr std::uintptr_t kFirstPage = 4096;
constexpr std::int64_t kFixedViewBuffers = 3;  // validity, views, sizes

std::int32_t number_at(const char* at) {
  std::int32_t number = 0;
  std::memcpy(&number, at, sizeof number);
  return number;
}

/// The alternating keys and values of encoded metadata, and its size.
std::pair<std::vector<std::string>, std::size_t> texts_of(const char* metadata) {
  std::vector<std::string> texts;
  const char* at = metadata + sizeof(std::int32_t);
  for (std::int32_t left = 2 * number_at(metadata); left > 0; --left) {
    texts.emplace_back(at + sizeof(std::int32_t), number_at(at));
    at += sizeof(std::int32_t) + texts.back().size();
  }
  return {texts, static_cast<std::size_t>(at - metadata)};
}

std::vector<std::pair<std::string, std::string>> sorted_pairs(const std::string& metadata) {
  const auto texts = texts_of(metadata.data()).first;
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::size_t i = 0; i + 1 < texts.size(); i += 2) pairs.emplace_back(texts[i], texts[i + 1]);
  std::ranges::sort(pairs);
  return pairs;
}

bool has_nulls(const ArrowArray& array) {
  const auto* const bits = static_cast<const std::uint8_t*>(array.buffers[0]);
  for (std::int64_t i = array.offset; i < array.offset + array.length; ++i) {
    if ((bits[i / 8] >> (i % 8) & 1) == 0) return true;
  }
  return false;
}

/// Whether the result is a copy of a buffer at an odd address. Every value has at least one byte.
/// Addresses in the first page stand for memory that must not be read.
bool is_aligned_copy(const void* original, const void* result, std::int64_t values) {
  const auto address = reinterpret_cast<std::uintptr_t>(original);
  return address % 2 != 0 && address > kFirstPage && result != nullptr && result != original &&
         std::memcmp(original, result, static_cast<std::size_t>(values)) == 0;
}

template <class Raw, class Copy>
void copy_below(const Raw& raw, Tree<Raw>* tree, const Copy& copy_child) {
  for (std::int64_t i = 0; i < raw.n_children; ++i) {
    tree->children.push_back(copy_child(*raw.children[i], static_cast<std::size_t>(i)));
    tree->pointers.push_back(&tree->children.back()->raw);
  }
  tree->raw.children = tree->pointers.data();
}

std::unique_ptr<Tree<ArrowSchema>> copy(const ArrowSchema& raw) {
  auto tree = std::make_unique<Tree<ArrowSchema>>();
  tree->raw = raw;
  tree->format = raw.format;
  if (raw.metadata != nullptr) tree->metadata.assign(raw.metadata, texts_of(raw.metadata).second);
  copy_below(raw, tree.get(), [](const ArrowSchema& child, std::size_t) { return copy(child); });
  if (raw.dictionary != nullptr) {
    tree->dictionary = copy(*raw.dictionary);
    tree->raw.dictionary = &tree->dictionary->raw;
  }
  return tree;
}

/// Whether there is a schema for every array in the tree.
bool fits(const ArrowArray& raw, const Tree<ArrowSchema>& schema) {
  if (raw.n_children != static_cast<std::int64_t>(schema.children.size())) return false;
  for (std::int64_t i = 0; i < raw.n_children; ++i) {
    if (!fits(*raw.children[i], *schema.children[static_cast<std::size_t>(i)])) return false;
  }
  if (raw.dictionary == nullptr || schema.dictionary == nullptr) {
    return raw.dictionary == nullptr && schema.dictionary == nullptr;
  }
  return fits(*raw.dictionary, *schema.dictionary);
}

std::unique_ptr<Tree<ArrowArray>> copy(const ArrowArray& raw, const Tree<ArrowSchema>& schema) {
  auto tree = std::make_unique<Tree<ArrowArray>>();
  tree->raw = raw;
  tree->buffers.assign(raw.buffers, raw.buffers + raw.n_buffers);
  tree->raw.buffers = tree->buffers.data();
  tree->is_view = schema.format == "vu" || schema.format == "vz";
  if (tree->is_view && !tree->buffers.empty() && tree->buffers.back() != nullptr) {
    const auto* const sizes = static_cast<const std::int64_t*>(tree->buffers.back());
    tree->sizes.assign(sizes, sizes + raw.n_buffers - kFixedViewBuffers);
  }
  tree->has_bitmap = !schema.format.starts_with("+u") && !tree->buffers.empty();
  if (tree->has_bitmap && tree->buffers[0] != nullptr) tree->has_nulls = has_nulls(raw);
  copy_below(raw, tree.get(), [&](const ArrowArray& child, std::size_t i) {
    return copy(child, *schema.children.at(i));
  });
  if (raw.dictionary != nullptr) {
    tree->dictionary = copy(*raw.dictionary, *schema.dictionary);
    tree->raw.dictionary = &tree->dictionary->raw;
  }
  return tree;
}

/// Calls `visit` for each pair of children, and for the dictionaries if both exist.
template <class Raw, class Visit>
void each_below(const Tree<Raw>& original, const Tree<Raw>& result, const Visit& visit) {
  for (std::size_t i = 0; i < std::min(original.children.size(), result.children.size()); ++i) {
    visit(*original.children[i], *result.children[i]);
  }
  if (original.dictionary && result.dictionary) visit(*original.dictionary, *result.dictionary);
}

void restore(const Tree<ArrowSchema>& original, Tree<ArrowSchema>& result) {
  const std::string& format = original.format;
  const bool is_decimal = format.starts_with("d:") && format.ends_with(kDefaultWidth);
  if (is_decimal && format == result.format + std::string(kDefaultWidth)) {
    result.raw.format = format.c_str();
  }
  if (!original.metadata.empty() && !result.metadata.empty() &&
      sorted_pairs(original.metadata) == sorted_pairs(result.metadata)) {
    result.raw.metadata = original.metadata.data();
  }
  if (original.dictionary && result.dictionary) {
    result.dictionary->raw.flags = original.dictionary->raw.flags;
  }
  each_below(original, result, [](const auto& one, auto& other) { restore(one, other); });
}

void restore(const Tree<ArrowArray>& original, Tree<ArrowArray>& result) {
  result.raw.null_count = original.raw.null_count;  // the validation layer has checked it
  const std::int64_t values = original.raw.offset + original.raw.length;
  const bool has_no_rows = values == 0;
  const std::size_t count = std::min(original.buffers.size(), result.buffers.size());
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_sizes = original.is_view && i + 1 == count;
    const bool is_left_out = original.buffers[i] == nullptr || result.buffers[i] == nullptr;
    const bool is_bitmap = i == 0 && original.has_bitmap;
    if (has_no_rows || (is_sizes && original.sizes == result.sizes) ||
        (is_bitmap ? is_left_out && !original.has_nulls && !result.has_nulls
                   : original.buffers[i] == nullptr ||
                         is_aligned_copy(original.buffers[i], result.buffers[i], values))) {
      result.buffers[i] = original.buffers[i];
    }
  }
  each_below(original, result, [](const auto& one, auto& other) { restore(one, other); });
}

}  // namespace

Original::Original(const FletchingSubject& subject, const ArrowSchema& schema) {
  if (rebuilds(subject)) schema_ = copy(schema);
}

Original::Original(const FletchingSubject& subject, const ArrowSchema& schema,
                   const ArrowArray& array)
    : Original(subject, schema) {
  if (schema_ && fits(array, *schema_)) array_ = copy(array, *schema_);
}

ArrowSchema Original::schema(const ArrowSchema& result) {
  if (!schema_) return result;
  schema_result_ = copy(result);
  restore(*schema_, *schema_result_);
  return schema_result_->raw;
}

ArrowDeviceArray Original::array(const ArrowDeviceArray& result) {
  if (!array_ || !fits(result.array, *schema_)) return result;
  ArrowDeviceArray restored = result;
  array_result_ = copy(result.array, *schema_);
  restore(*array_, *array_result_);
  restored.array = array_result_->raw;
  return restored;
}

}  // namespace fletching::conformance
