// SPDX-License-Identifier: Apache-2.0
//
// DLPack tensors, valid and malformed, as producers may pass them: an import must read no values
// and must call the deleter once.
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "fletching/dlpack_import.hpp"
#include "fletching/format.hpp"
#include "require.hpp"

namespace {

using fletching::fuzz::Input;
using fletching::fuzz::require;

/// A small number in most cases, sometimes any number.
std::int64_t take_extent(Input& input) {
  const auto small = input.take<std::int8_t>();
  return small == 127 ? input.take<std::int64_t>() : small;
}

struct Tensor {
  std::array<std::int64_t, 4> shape{};
  std::array<std::int64_t, 4> strides{};
  int deleted = 0;
  DLManagedTensorVersioned managed{};

  explicit Tensor(Input& input) {
    const auto flags = input.take<std::uint8_t>();
    DLTensor& tensor = managed.dl_tensor;
    tensor.ndim = (flags & 1) != 0 ? static_cast<std::int8_t>(input.take<std::uint8_t>()) % 5
                                   : static_cast<std::int32_t>(input.take<std::uint8_t>() % 5);
    for (std::int64_t& extent : shape) extent = take_extent(input);
    for (std::int64_t& stride : strides) stride = take_extent(input);
    tensor.shape = (flags & 2) != 0 ? nullptr : shape.data();
    tensor.strides = (flags & 4) != 0 ? nullptr : strides.data();
    tensor.dtype.code = input.take<std::uint8_t>() % 20;
    tensor.dtype.bits = input.take<std::uint8_t>();
    tensor.dtype.lanes = (flags & 8) != 0 ? input.take<std::uint16_t>() : std::uint16_t{1};
    tensor.device.device_type = static_cast<DLDeviceType>(input.take<std::uint8_t>() % 20);
    tensor.device.device_id = input.take<std::int32_t>();
    tensor.byte_offset =
        (flags & 16) != 0 ? input.take<std::uint64_t>() : input.take<std::uint8_t>();
    // A pointer to unmapped memory, so that a read through it faults.
    if ((flags & 32) == 0) tensor.data = reinterpret_cast<void*>(std::uintptr_t{0x1000});
    managed.version = {(flags & 64) != 0 ? input.take<std::uint32_t>() : DLPACK_MAJOR_VERSION, 3};
    managed.flags = (flags & 128) != 0 ? input.take<std::uint64_t>() : 0;
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* self) {
      ++static_cast<Tensor*>(self->manager_ctx)->deleted;
    };
  }
};

void import(Tensor& tensor, const fletching::DlpackImportOptions& options) {
  tensor.deleted = 0;
  {
    const auto imported = fletching::from_dlpack(fletching::DlpackTensor(&tensor.managed), options);
    if (imported) {
      require(tensor.deleted == 0, "the memory lives as long as the array");
      require(fletching::parse_format(imported->schema->format).ok(), "the format is one");
      require(imported->array->array.length >= 0 && imported->array->array.offset >= 0,
              "length and offset are no less than 0");
    } else {
      require(!imported.error().message().empty(), "an error has words");
    }
  }
  require(tensor.deleted == 1, "the deleter is called once");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Tensor tensor(input);
  import(tensor, {});
  import(tensor, {.dimensions = fletching::Dimensions::kFixedSizeLists,
                  .strided = fletching::Strided::kRefuse,
                  .as_storage = true});
  return 0;
}
