// SPDX-License-Identifier: Apache-2.0
//
// Arrays that become tensors: nested lists, any formats, any parameters of extension types. The
// description of an accepted tensor must be consistent; no values are read.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fletching/extension.hpp"
#include "fletching/metadata.hpp"
#include "fletching/tensor.h"
#include "require.hpp"

namespace {

using fletching::fuzz::Input;
using fletching::fuzz::require;

constexpr std::size_t kLevels = 5;
constexpr std::string_view kFormats[] = {
    "+w:2", "+w:3", "+w:6", "+w:0",    "i",        "c", "C", "S",  "f", "g",
    "e",    "w:3",  "tdD",  "tsn:UTC", "d:9,2,32", "b", "u", "+l", "+s"};
constexpr std::string_view kNames[] = {"", "arrow.bool8", "arrow.fixed_shape_tensor",
                                       "arrow.opaque", "mine"};
constexpr std::string_view kParameters[] = {
    "",
    R"({"shape":[2,3],"permutation":[1,0]})",
    R"({"shape":[6]})",
    R"({"type_name":"bfloat16","vendor_name":"DLPack"})",
    R"({"type_name":"complex64","vendor_name":"DLPack"})",
    R"({"vendor_name":"DLPack","type_name":"float6_e2m3fn_x4"})"};

std::string take_text(Input& input, std::string_view known) {
  const auto size = input.take<std::uint8_t>();
  return size < 200 ? std::string(known) : std::string(input.take_bytes(size - 200U));
}

template <std::size_t N>
std::string_view choose(Input& input, const std::string_view (&all)[N]) {
  return all[input.take<std::uint8_t>() % N];
}

/// A small number in most cases, sometimes any number.
std::int64_t take_size(Input& input) {
  const auto small = input.take<std::uint8_t>();
  return small < 250 ? std::int64_t{small % 32} : input.take<std::int64_t>();
}

struct Level {
  std::string format;
  std::string metadata;
  std::array<const void*, 2> buffers{};
  ArrowSchema schema{};
  ArrowArray array{};
  ArrowSchema* schema_child = nullptr;
  ArrowArray* array_child = nullptr;

  void fill(Input& input, Level* below) {
    format = take_text(input, choose(input, kFormats));
    const std::string_view name = choose(input, kNames);
    const std::string parameters = take_text(input, choose(input, kParameters));
    if (!name.empty()) {
      metadata = fletching::encode_metadata({{fletching::kExtensionNameKey, name},
                                             {fletching::kExtensionMetadataKey, parameters}})
                     .value();
    }
    // A pointer to unmapped memory, so that a read through it faults.
    buffers[1] = reinterpret_cast<const void*>(std::uintptr_t{0x1000});
    schema.format = format.c_str();
    schema.metadata = metadata.empty() ? nullptr : metadata.data();
    schema.release = &fletching::fuzz::drop<ArrowSchema>;
    array.length = take_size(input);
    array.offset = take_size(input);
    array.n_buffers = 2;
    array.buffers = buffers.data();
    array.release = &fletching::fuzz::drop<ArrowArray>;
    if (below == nullptr) return;
    schema_child = &below->schema;
    array_child = &below->array;
    schema.n_children = array.n_children = 1;
    schema.children = &schema_child;
    array.children = &array_child;
  }
};

/// The bytes of an element according to its type.
std::uint64_t element_bytes(const FletchingTensorView& view) {
  return view.is_padded != 0 ? view.dtype.lanes : view.dtype.bits * view.dtype.lanes / 8U;
}

void check(const FletchingTensorView& view) {
  require(view.ndim >= 1 && view.ndim <= FLETCHING_TENSOR_DIMENSIONS, "the dimensions are few");
  std::uint64_t elements = 1;
  bool fits = true;
  for (std::int32_t i = 0; i < view.ndim; ++i) {
    require(view.shape[i] >= 0 && view.strides[i] >= 0, "sizes and strides are no less than 0");
    const auto extent = static_cast<std::uint64_t>(view.shape[i]);
    fits = fits && !__builtin_mul_overflow(elements, extent, &elements);
  }
  if (fits) {
    require(view.bytes == elements * element_bytes(view),
            "the shape has as many bytes as there are");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const auto options = input.take<std::uint16_t>();
  const std::size_t count = 1 + input.take<std::uint8_t>() % kLevels;
  std::array<Level, kLevels> levels;
  for (std::size_t i = count; i-- > 0;) {
    levels[i].fill(input, i + 1 < count ? &levels[i + 1] : nullptr);
  }
  FletchingTensorView view;
  FletchingMessage message;
  const int code =
      FletchingTensorDescribe(&levels[0].schema, &levels[0].array, options, &view, &message);
  if (code == 0) {
    check(view);
  } else {
    require(message.text[0] != '\0', "an error has words");
  }
  return 0;
}
