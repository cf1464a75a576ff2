// SPDX-License-Identifier: Apache-2.0
//
// A DLPack tensor as a device array, without a copy unless the caller asks for one. Which types are
// which is in dlpack_types.hpp.
#ifndef FLETCHING_DLPACK_IMPORT_HPP
#define FLETCHING_DLPACK_IMPORT_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fletching/array_builder.hpp"
#include "fletching/detail/checked.hpp"
#include "fletching/detail/dlpack_layout.hpp"
#include "fletching/dlpack_tensor.hpp"
#include "fletching/dlpack_types.hpp"
#include "fletching/extension.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/schema_builder.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// What happens with a tensor whose elements do not lie as an Arrow array's do.
enum class Strided : std::uint8_t {
  kRefuse,
  kCopy,  ///< gather them in new memory of the CPU, if the host can read the tensor; else refuse
};

/// How a tensor is imported.
struct DlpackImportOptions {
  Dimensions dimensions = Dimensions::kFixedShapeTensor;
  Strided strided = Strided::kRefuse;
  /// Import types that are not Arrow's as what stores them.
  bool as_storage = false;
};

/// A tensor as Arrow has it.
struct ImportedTensor {
  Schema schema;      ///< of the array; it has no name
  DeviceArray array;  ///< without sync_event
  /// The memory is read-only. Always true for a struct without the flag.
  bool read_only = true;
  /// The memory is a copy for this import only, made by the producer or here.
  bool copied = false;
};

namespace detail {

/// How the array is built: sizes of the lists from the outside in, and the extension, if any.
struct ArrayShape {
  std::int64_t length = 1;
  std::vector<std::int32_t> lists;
  std::string extension_metadata;  ///< of arrow.fixed_shape_tensor; empty: plain lists
};

inline Result<std::int32_t> list_size(Size size) {
  if (size && *size <= INT32_MAX) return static_cast<std::int32_t>(*size);
  return Error{ENOTSUP,
               "DLTensor.shape: inner dimensions too large for a fixed-size list: expected at most "
               "2147483647 elements"};
}

inline Result<ArrayShape> array_shape(const std::vector<Dimension>& dimensions,
                                      const std::vector<std::int32_t>& order, Dimensions wanted) {
  ArrayShape out;
  if (!dimensions.empty()) out.length = dimensions[0].extent;
  if (dimensions.size() < 2) return out;
  TensorShape tensor;
  tensor.permutation.resize(order.size());
  Size cell = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto axis = static_cast<std::size_t>(order[i]);
    tensor.shape.push_back(dimensions[axis + 1].extent);
    tensor.permutation[axis] = static_cast<std::int32_t>(i);
  }
  bool empty = false;
  for (const std::int64_t extent : tensor.shape) empty |= extent == 0;
  for (const std::int64_t extent : tensor.shape) {
    if (wanted == Dimensions::kFixedSizeLists) {
      Result<std::int32_t> size = list_size(extent);
      if (!size) return std::move(size).error();
      out.lists.push_back(*size);
    }
    cell = empty ? Size{0} : multiply(cell, extent);
  }
  if (wanted == Dimensions::kFixedSizeLists) return out;
  Result<std::int32_t> size = list_size(cell);
  if (!size) return std::move(size).error();
  out.lists.push_back(*size);
  out.extension_metadata = format_tensor_shape(tensor);
  return out;
}

inline std::vector<KeyValue> extension_pairs(std::string_view name, std::string_view parameters) {
  if (name.empty()) return {};
  return {{kExtensionNameKey, name}, {kExtensionMetadataKey, parameters}};
}

inline Result<Schema> schema_of(const ArrayShape& shape, const ArrowType& type) {
  std::vector<std::string> formats;
  formats.reserve(shape.lists.size());
  for (const std::int32_t size : shape.lists) formats.push_back("+w:" + std::to_string(size));
  const bool is_tensor = !shape.extension_metadata.empty();
  SchemaNode node{.format = type.format, .metadata = extension_pairs(type.extension, "")};
  for (std::size_t i = formats.size(); i-- > 0;) {
    node.name = "item";
    SchemaNode list{.format = formats[i]};
    if (is_tensor) list.metadata = extension_pairs(kFixedShapeTensorName, shape.extension_metadata);
    list.children.push_back(std::move(node));
    node = std::move(list);
  }
  return make_schema(node);
}

/// Lists within each other around the values; `memory` owns these.
template <class Memory>
Result<DeviceArray> array_of(const ArrayShape& shape, const Place& place, DLDevice device,
                             Memory memory) {
  const auto lists = static_cast<std::int64_t>(shape.lists.size());
  auto builder = build_array({.arrays = lists, .buffers = lists + 2}, std::move(memory));
  if (!builder) return std::move(builder).error();
  ArrowArray* array = &builder->root();
  Size length = shape.length;
  for (const std::int32_t size : shape.lists) {
    builder->set(*array, {.length = *length}, {nullptr});
    array = &builder->add_children(*array, 1)[0];
    length = multiply(length, size);
    if (!length) return bad_tensor("shape: too many elements: expected less than 2^63");
  }
  builder->set(*array, {.length = *length, .offset = place.offset}, {nullptr, place.buffer});
  return builder->finish(device.device_type, to_arrow_device_id(device));
}

template <class Memory>
Result<ImportedTensor> build(const TensorLayout& layout, const Arrangement& arrangement,
                             DLDevice device, Dimensions wanted, Memory memory) {
  Result<ArrayShape> shape = array_shape(layout.dimensions, arrangement.order, wanted);
  if (!shape) return std::move(shape).error();
  Result<Schema> schema = schema_of(*shape, layout.type);
  if (!schema) return std::move(schema).error();
  Result<DeviceArray> array = array_of(*shape, arrangement.place, device, std::move(memory));
  if (!array) return std::move(array).error();
  return ImportedTensor{*std::move(schema), *std::move(array)};
}

/// The array is the CPU's, because the new memory is, whichever memory the host reads.
inline Result<ImportedTensor> import_copy(const DLTensor& tensor, const TensorLayout& layout,
                                          Dimensions wanted) {
  Result<Bytes> bytes = copy_values(tensor, layout);
  if (!bytes) return std::move(bytes).error();
  const Arrangement arrangement{plain_order(layout.dimensions), {bytes->get(), 0}};
  Result<ImportedTensor> out = build(layout, arrangement, {kDLCPU, 0}, wanted, *std::move(bytes));
  if (!out) return out;
  out->copied = true;
  out->read_only = false;
  return out;
}

/// Types narrower than a byte are packed unless a flag says otherwise.
inline bool is_padded(const DLManagedTensorVersioned& managed) noexcept {
  return (managed.flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0;
}
inline bool is_padded(const DLManagedTensor& /*managed*/) noexcept { return false; }

/// For a tensor that is already ordered behind the producer's work.
struct NoWait {
  Status operator()(DLDevice /*device*/) const noexcept { return {}; }
};

/// `wait` is called before the host reads the tensor to copy it.
template <class Tensor, class Wait>
Result<ImportedTensor> import_layout(Tensor managed, const DlpackImportOptions& options,
                                     Wait wait) {
  const DLTensor& tensor = managed->dl_tensor;
  Result<ArrowType> type = arrow_type(tensor.dtype, options.as_storage, is_padded(*managed));
  if (!type) return std::move(type).error();
  TensorLayout layout;
  layout.type = *type;
  Status read = read_dimensions(tensor, layout);
  if (read) read = count_values(tensor.strides != nullptr, layout);
  if (!read) return std::move(read).error();
  Result<Arrangement> arrangement = arrange(tensor, layout, options.dimensions);
  if (arrangement) {
    const DLDevice device = tensor.device;
    return build(layout, *arrangement, device, options.dimensions, std::move(managed));
  }
  const bool copy = arrangement.error().code() == ENOTSUP && options.strided == Strided::kCopy &&
                    is_host_readable(tensor.device.device_type);
  if (!copy) return std::move(arrangement).error();
  Status waited = wait(tensor.device);
  if (!waited) return std::move(waited).error();
  return import_copy(tensor, layout, options.dimensions);
}

template <class Wait>
Result<ImportedTensor> import_tensor(DlpackTensor tensor, const DlpackImportOptions& options,
                                     Wait wait) {
  if (!tensor) return Error{EINVAL, "from_dlpack: tensor is NULL or moved from: expected a tensor"};
  if (tensor->version.major != DLPACK_MAJOR_VERSION) {
    return Error{
        ENOTSUP,
        "DLManagedTensorVersioned.version: unknown layout: expected major version 1, got " +
            std::to_string(tensor->version.major) + "." + std::to_string(tensor->version.minor) +
            "; hint: pass max_version to the producer"};
  }
  const std::uint64_t flags = tensor->flags;
  constexpr std::uint64_t known = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED |
                                  DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  // A later minor version may add bits, but none that changes the meaning of the other fields.
  if ((flags & ~known) != 0 && tensor->version.minor <= DLPACK_MINOR_VERSION) {
    return Error{
        ENOTSUP,
        "DLManagedTensorVersioned.flags: unknown bit: expected those of version 1.3, got " +
            std::to_string(flags) + "; hint: fix the producer"};
  }
  Result<ImportedTensor> imported = import_layout(std::move(tensor), options, wait);
  if (imported && !imported->copied) {
    imported->read_only = (flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
    imported->copied = (flags & DLPACK_FLAG_BITMASK_IS_COPIED) != 0;
  }
  return imported;
}

template <class Wait>
Result<ImportedTensor> import_tensor(LegacyDlpackTensor tensor, const DlpackImportOptions& options,
                                     Wait wait) {
  if (!tensor) return Error{EINVAL, "from_dlpack: tensor is NULL or moved from: expected a tensor"};
  return import_layout(std::move(tensor), options, wait);
}

}  // namespace detail

/// `tensor` as a schema and a device array.
///
/// Shape: the first dimension is the array's length; the others become arrow.fixed_shape_tensor or
/// fixed-size lists, as the options say. A tensor without dimensions is an array of length 1.
/// byte_offset is added to the pointer, or to ArrowArray.offset where the memory has no addresses.
/// NULL strides mean compact ones, whatever the version. The array has no sync_event: order
/// it behind the producer's work first.
///
/// Ownership: the tensor is consumed in any case. Its deleter is called when the array and every
/// child moved out of it are released, from whatever thread; at once when the import fails or
/// copies. A NULL deleter is not called.
///
/// Errors: ENOTSUP for types, device layouts and strides that Arrow has not (see dlpack_types.hpp)
/// and for another major version, of which nothing but the deleter is used; EINVAL for a malformed
/// tensor, and for NULL; ENOMEM.
inline Result<ImportedTensor> from_dlpack(DlpackTensor tensor,
                                          const DlpackImportOptions& options = {}) noexcept {
  return detail::guarded(
      [&] { return detail::import_tensor(std::move(tensor), options, detail::NoWait()); });
}

/// The same for the struct from before DLPack 1.0, whose memory counts as read-only.
inline Result<ImportedTensor> from_dlpack(LegacyDlpackTensor tensor,
                                          const DlpackImportOptions& options = {}) noexcept {
  return detail::guarded(
      [&] { return detail::import_tensor(std::move(tensor), options, detail::NoWait()); });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DLPACK_IMPORT_HPP
