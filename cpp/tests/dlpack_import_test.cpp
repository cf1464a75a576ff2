// Tensors imported as device arrays.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dlpack_data.hpp"
#include "dlpack_exported.hpp"
#include "error_messages.hpp"
#include "fletching/check_array.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/metadata.hpp"

namespace fletching::testing {
namespace {

alignas(16) constexpr std::array<std::int32_t, 24> kValues{
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
constexpr DlpackImportOptions kLists{.dimensions = Dimensions::kFixedSizeLists};
constexpr DlpackImportOptions kCopies{.strided = Strided::kCopy};

template <class Tensor>
ImportedTensor imported(Tensor& tensor, const DlpackImportOptions& options = {}) {
  Result<ImportedTensor> result = from_dlpack(tensor.take(), options);
  if (!result) ADD_FAILURE() << result.error().message();
  return result ? *std::move(result) : ImportedTensor{};
}

/// Returns the error and checks that the tensor's deleter was called once.
template <class Tensor>
Error refused(Tensor& tensor, const DlpackImportOptions& options = {}) {
  const int before = tensor.deleted;
  Result<ImportedTensor> result = from_dlpack(tensor.take(), options);
  if (result) ADD_FAILURE() << "imported";
  EXPECT_EQ(tensor.deleted, before + 1);
  return result ? Error(EIO, "") : std::move(result).error();
}

/// The innermost array.
const ArrowArray& leaf(const ArrowArray& array) {
  return array.n_children == 0 ? array : leaf(*array.children[0]);
}

const ArrowSchema& leaf(const ArrowSchema& schema) {
  return schema.n_children == 0 ? schema : leaf(*schema.children[0]);
}

std::vector<std::int32_t> values(const ImportedTensor& tensor) {
  const ArrowArray& array = leaf(tensor.array->array);
  const auto* first = static_cast<const std::int32_t*>(array.buffers[1]);
  return {first, first + array.length};
}

std::string parameters(const Schema& schema) {
  const Result<Extension> extension = find_extension(*schema);
  return extension ? std::string(extension->name) + std::string(extension->metadata) : "?";
}

TEST(DlpackImport, SharesMemory) {
  ForeignTensor tensor(kInt32, kValues.data(), {6}, {1});
  ImportedTensor result = imported(tensor);
  EXPECT_STREQ(result.schema->format, "i");
  EXPECT_STREQ(result.schema->name, "");
  EXPECT_EQ(result.schema->metadata, nullptr);
  EXPECT_EQ(result.array->array.length, 6);
  EXPECT_EQ(result.array->array.null_count, 0);
  EXPECT_EQ(result.array->array.offset, 0);
  EXPECT_EQ(result.array->array.n_buffers, 2);
  EXPECT_EQ(result.array->array.buffers[0], nullptr);
  EXPECT_EQ(result.array->array.buffers[1], kValues.data());
  EXPECT_EQ(result.array->sync_event, nullptr);
  EXPECT_TRUE(std::ranges::all_of(result.array->reserved, [](auto word) { return word == 0; }));
  result.schema.release();
  EXPECT_EQ(tensor.deleted, 0);
  result.array.release();
  EXPECT_EQ(tensor.deleted, 1);
}

TEST(DlpackImport, AcceptsLegacyStruct) {
  ForeignLegacyTensor tensor(kInt32, kValues.data(), {6});
  ImportedTensor result = imported(tensor);
  EXPECT_EQ(result.array->array.buffers[1], kValues.data());
  EXPECT_TRUE(result.read_only);
  EXPECT_FALSE(result.copied);
  result.array.release();
  EXPECT_EQ(tensor.deleted, 1);
}

// One complex number, and one vector of four lanes.
TEST(DlpackImport, ZeroDimensionalTensorIsOneElement) {
  for (const auto& [type, values] :
       {std::pair{DLDataType{kDLComplex, 64, 1}, 2}, {DLDataType{kDLFloat, 32, 4}, 4}}) {
    for (const Dimensions dimensions :
         {Dimensions::kFixedShapeTensor, Dimensions::kFixedSizeLists}) {
      ForeignTensor tensor(type, kValues.data(), {});
      const ImportedTensor result =
          imported(tensor, {.dimensions = dimensions, .as_storage = true});
      EXPECT_EQ(result.array.length(), 1);
      EXPECT_EQ(result.schema.format(), "+w:" + std::to_string(values));
      EXPECT_EQ(result.array.children()[0]->length, values);
      EXPECT_EQ(result.array.children()[0]->buffers[1], kValues.data());
      EXPECT_TRUE(verify_array(*result.schema, *result.array));
    }
  }
}

TEST(DlpackImport, RejectsNull) {
  EXPECT_EQ(from_dlpack(DlpackTensor()).error().code(), EINVAL);
  EXPECT_EQ(from_dlpack(LegacyDlpackTensor()).error().code(), EINVAL);
}

struct TypeRow {
  int code;
  int bits;
  const char* format;  // nullptr: rejected
  int repeat;
  bool storage_only;
};

constexpr TypeRow kTypes[] = {
    {kDLInt, 8, "c", 1, false},
    {kDLInt, 16, "s", 1, false},
    {kDLInt, 32, "i", 1, false},
    {kDLInt, 64, "l", 1, false},
    {kDLUInt, 8, "C", 1, false},
    {kDLUInt, 16, "S", 1, false},
    {kDLUInt, 32, "I", 1, false},
    {kDLUInt, 64, "L", 1, false},
    {kDLFloat, 16, "e", 1, false},
    {kDLFloat, 32, "f", 1, false},
    {kDLFloat, 64, "g", 1, false},
    {kDLBool, 8, "c", 1, false},
    {kDLComplex, 32, "e", 2, true},
    {kDLComplex, 64, "f", 2, true},
    {kDLComplex, 128, "g", 2, true},
    {kDLBfloat, 16, "S", 1, true},
    {kDLFloat8_e3m4, 8, "C", 1, true},
    {kDLFloat8_e5m2fnuz, 8, "C", 1, true},
    {kDLFloat8_e8m0fnu, 8, "C", 1, true},
    {kDLInt, 128, nullptr, 0, false},
    {kDLInt, 24, nullptr, 0, false},
    {kDLInt, 0, nullptr, 0, false},
    {kDLFloat, 8, nullptr, 0, false},
    {kDLFloat, 128, nullptr, 0, false},
    {kDLBool, 1, nullptr, 0, false},
    {kDLBool, 16, nullptr, 0, false},
    {kDLComplex, 16, nullptr, 0, false},
    {kDLComplex, 8, nullptr, 0, false},
    {kDLBfloat, 32, nullptr, 0, false},
    {kDLOpaqueHandle, 64, nullptr, 0, false},
    {kDLFloat4_e2m1fn, 4, nullptr, 0, false},
    {99, 32, nullptr, 0, false},
};

TEST(DlpackImport, AcceptsOrRejectsEveryType) {
  for (const TypeRow& row : kTypes) {
    const DLDataType type{static_cast<std::uint8_t>(row.code), static_cast<std::uint8_t>(row.bits),
                          1};
    const std::string text = std::to_string(row.code) + ", " + std::to_string(row.bits);
    for (const bool as_storage : {false, true}) {
      ForeignTensor tensor(type, kValues.data(), {2});
      if (row.format == nullptr) {
        EXPECT_EQ(refused(tensor, {.as_storage = as_storage}).code(), ENOTSUP) << text;
        continue;
      }
      const ImportedTensor result = imported(tensor, {.as_storage = as_storage});
      EXPECT_STREQ(leaf(*result.schema).format, row.format) << text;
      EXPECT_EQ(leaf(result.array->array).length, 2 * row.repeat) << text;
      EXPECT_EQ(parameters(result.schema).starts_with("arrow.opaque"),
                row.storage_only && !as_storage)
          << text;
    }
  }
}

struct OpaqueRow {
  DLDataType type;
  std::uint64_t flags;
  const char* format;
  const char* type_name;
};

constexpr OpaqueRow kOpaqueTypes[] = {
    {{kDLBfloat, 16, 1}, 0, "S", "bfloat16"},
    {{kDLComplex, 32, 1}, 0, "+w:2", "complex32"},
    {{kDLComplex, 64, 1}, 0, "+w:2", "complex64"},
    {{kDLComplex, 128, 1}, 0, "+w:2", "complex128"},
    {{kDLFloat8_e3m4, 8, 1}, 0, "C", "float8_e3m4"},
    {{kDLFloat8_e4m3, 8, 1}, 0, "C", "float8_e4m3"},
    {{kDLFloat8_e4m3b11fnuz, 8, 1}, 0, "C", "float8_e4m3b11fnuz"},
    {{kDLFloat8_e4m3fn, 8, 1}, 0, "C", "float8_e4m3fn"},
    {{kDLFloat8_e4m3fnuz, 8, 1}, 0, "C", "float8_e4m3fnuz"},
    {{kDLFloat8_e5m2, 8, 1}, 0, "C", "float8_e5m2"},
    {{kDLFloat8_e5m2fnuz, 8, 1}, 0, "C", "float8_e5m2fnuz"},
    {{kDLFloat8_e8m0fnu, 8, 1}, 0, "C", "float8_e8m0fnu"},
    {{kDLFloat6_e2m3fn, 6, 1}, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, "C", "float6_e2m3fn"},
    {{kDLFloat6_e3m2fn, 6, 1}, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, "C", "float6_e3m2fn"},
    {{kDLFloat4_e2m1fn, 4, 1}, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, "C", "float4_e2m1fn"},
    {{kDLFloat6_e2m3fn, 6, 4}, 0, "w:3", "float6_e2m3fn_x4"},
    {{kDLFloat6_e3m2fn, 6, 4}, 0, "w:3", "float6_e3m2fn_x4"},
    {{kDLFloat4_e2m1fn, 4, 2}, 0, "C", "float4_e2m1fn_x2"},
};

TEST(DlpackImport, KeepsTypesWithoutArrowEquivalent) {
  for (const OpaqueRow& row : kOpaqueTypes) {
    ForeignTensor tensor(row.type, kValues.data(), {3});
    tensor.managed.flags = row.flags;
    ImportedTensor result = imported(tensor);
    EXPECT_STREQ(result.schema->format, row.format) << row.type_name;
    EXPECT_EQ(parameters(result.schema), std::string(R"(arrow.opaque{"type_name":")") +
                                             row.type_name + R"(","vendor_name":"DLPack"})");
    EXPECT_EQ(result.array->array.length, 3) << row.type_name;
    Result<DlpackTensor> back = to_dlpack(*result.schema, result.array, {.read_only = false});
    ASSERT_TRUE(back.ok()) << back.error().message();
    const DLTensor& same = (*back)->dl_tensor;
    EXPECT_EQ(same.dtype.code, row.type.code) << row.type_name;
    EXPECT_EQ(same.dtype.bits, row.type.bits) << row.type_name;
    EXPECT_EQ(same.dtype.lanes, row.type.lanes) << row.type_name;
    EXPECT_EQ((*back)->flags, row.flags) << row.type_name;
    EXPECT_EQ(same.ndim, 1) << row.type_name;
    EXPECT_EQ(same.data, kValues.data()) << row.type_name;
  }
}

TEST(DlpackImport, KeepsTypeInsideTensor) {
  ForeignTensor tensor({kDLComplex, 64, 1}, kValues.data(), {2, 2, 3}, {6, 1, 2});
  ImportedTensor result = imported(tensor);
  EXPECT_STREQ(result.schema->format, "+w:6");
  EXPECT_STREQ(result.schema->children[0]->format, "+w:2");
  EXPECT_STREQ(leaf(*result.schema).format, "f");
  EXPECT_EQ(leaf(result.array->array).length, 24);
  Result<DlpackTensor> back = to_dlpack(*result.schema, result.array);
  ASSERT_TRUE(back.ok()) << back.error().message();
  const DLTensor& same = (*back)->dl_tensor;
  EXPECT_EQ(same.dtype.code, kDLComplex);
  EXPECT_EQ(same.dtype.bits, 64);
  EXPECT_EQ(Sizes(same.shape, same.shape + same.ndim), (Sizes{2, 2, 3}));
  EXPECT_EQ(Sizes(same.strides, same.strides + same.ndim), (Sizes{6, 1, 2}));
}

TEST(DlpackImport, RejectsNarrowValuesWithReason) {
  ForeignTensor packed({kDLFloat4_e2m1fn, 4, 1}, kValues.data(), {2});
  expect_mentions(refused(packed), "hint: export padded ones, or lanes of whole bytes");
  ForeignTensor odd({kDLFloat6_e2m3fn, 6, 2}, kValues.data(), {2});
  expect_mentions(refused(odd), "float6_e2m3fn of 6 bits and 2 lanes");
  ForeignTensor reserved({18, 32, 1}, kValues.data(), {2});
  expect_mentions(refused(reserved), "unreleased(bcomplex, 18) of 32 bits");
}

TEST(DlpackImport, NamesUnknownTypeCode) {
  ForeignTensor tensor({99, 32, 1}, kValues.data(), {2});
  expect_mentions(refused(tensor), "unknown(99) of 32 bits");
}

TEST(DlpackImport, ConvertsBoolToBool8) {
  ForeignTensor tensor({kDLBool, 8, 1}, "\1\0", {2});
  const ImportedTensor result = imported(tensor);
  EXPECT_STREQ(result.schema->format, "c");
  EXPECT_EQ(parameters(result.schema), "arrow.bool8");
}

TEST(DlpackImport, ConvertsLanesToDimension) {
  ForeignTensor tensor({kDLInt, 32, 4}, kValues.data(), {3}, {1});
  const ImportedTensor result = imported(tensor);
  EXPECT_STREQ(result.schema->format, "+w:4");
  EXPECT_EQ(result.array->array.length, 3);
  EXPECT_EQ(leaf(result.array->array).length, 12);
  ForeignTensor none({kDLInt, 32, 0}, kValues.data(), {3});
  EXPECT_EQ(refused(none).code(), ENOTSUP);
}

TEST(DlpackImport, ConvertsDimensionsToTensor) {
  ForeignTensor tensor(kInt32, kValues.data(), {2, 3, 4}, {12, 4, 1});
  const ImportedTensor result = imported(tensor);
  EXPECT_STREQ(result.schema->format, "+w:12");
  EXPECT_EQ(parameters(result.schema), "arrow.fixed_shape_tensor{\"shape\":[3,4]}");
  EXPECT_EQ(result.array->array.n_buffers, 1);
  EXPECT_EQ(result.array->array.length, 2);
  EXPECT_EQ(leaf(result.array->array).length, 24);
  EXPECT_STREQ(result.schema->children[0]->name, "item");
}

TEST(DlpackImport, ConvertsDimensionsToLists) {
  ForeignTensor tensor(kInt32, kValues.data(), {2, 3, 4});
  const ImportedTensor result = imported(tensor, kLists);
  EXPECT_STREQ(result.schema->format, "+w:3");
  EXPECT_EQ(result.schema->metadata, nullptr);
  EXPECT_STREQ(result.schema->children[0]->format, "+w:4");
  EXPECT_EQ(result.array->array.children[0]->length, 6);
  EXPECT_EQ(leaf(result.array->array).length, 24);
}

TEST(DlpackImport, KeepsPermutation) {
  // In memory order the dimensions are 2, 1, 3, with 4, 2, 3 elements.
  ForeignTensor tensor(kInt32, kValues.data(), {1, 2, 4, 3}, {24, 3, 6, 1});
  const ImportedTensor result = imported(tensor);
  EXPECT_EQ(parameters(result.schema),
            "arrow.fixed_shape_tensor{\"shape\":[4,2,3],\"permutation\":[1,0,2]}");
  ForeignTensor lists(kInt32, kValues.data(), {1, 2, 4, 3}, {24, 3, 6, 1});
  EXPECT_EQ(refused(lists, kLists).code(), ENOTSUP);
}

TEST(DlpackImport, RoundTripsToSameTensor) {
  const std::vector<std::int64_t> shape{2, 2, 3, 2};
  const std::vector<std::int64_t> strides{12, 1, 4, 2};
  ForeignTensor tensor(kInt32, kValues.data(), shape, strides);
  ImportedTensor result = imported(tensor);
  Result<DlpackTensor> again = to_dlpack(*result.schema, result.array);
  ASSERT_TRUE(again) << again.error().message();
  const DLTensor& there = (*again)->dl_tensor;
  EXPECT_EQ(std::vector<std::int64_t>(there.shape, there.shape + there.ndim), shape);
  EXPECT_EQ(std::vector<std::int64_t>(there.strides, there.strides + there.ndim), strides);
  EXPECT_EQ(there.data, kValues.data());
  again->release();
  EXPECT_EQ(tensor.deleted, 1);
}

TEST(DlpackImport, IgnoresUnusedStrides) {
  ForeignTensor tensor(kInt32, kValues.data(), {1, 6, 1}, {-77, 1, INT64_MIN});
  EXPECT_EQ(imported(tensor).array->array.length, 1);
  ForeignTensor lanes({kDLInt, 32, 4}, kValues.data(), {1}, {INT64_MIN});
  EXPECT_EQ(imported(lanes).array->array.length, 1);
  ForeignTensor empty(kInt32, nullptr, {3, 0}, {INT64_MAX, INT64_MIN});
  EXPECT_EQ(imported(empty).array->array.length, 3);
}

TEST(DlpackImport, RejectsGaps) {
  const std::vector<std::vector<std::int64_t>> gaps{{2},   // every other element
                                                    {-1},  // reversed
                                                    {0},   // the same element repeatedly
                                                    {INT64_MIN}};
  for (const std::vector<std::int64_t>& strides : gaps) {
    ForeignTensor tensor(kInt32, kValues.data(), {3}, strides);
    EXPECT_EQ(refused(tensor).code(), ENOTSUP) << strides[0];
  }
  ForeignTensor columns(kInt32, kValues.data(), {2, 3}, {1, 2});
  expect_mentions(refused(columns), "copy the tensor");
  ForeignTensor padded(kInt32, kValues.data(), {2, 3}, {4, 1});
  EXPECT_EQ(refused(padded).code(), ENOTSUP);
  ForeignTensor inside(kInt32, kValues.data(), {2, 2, 3}, {8, 4, 1});
  EXPECT_EQ(refused(inside).code(), ENOTSUP);
}

TEST(DlpackImport, CopiesGapsOnRequest) {
  ForeignTensor backwards(kInt32, kValues.data() + 4, {3}, {-2});
  ImportedTensor result = imported(backwards, kCopies);
  EXPECT_EQ(backwards.deleted, 1);
  EXPECT_TRUE(result.copied);
  EXPECT_FALSE(result.read_only);
  EXPECT_EQ(values(result), (std::vector<std::int32_t>{4, 2, 0}));
  ForeignTensor columns(kInt32, kValues.data(), {2, 3}, {1, 2});
  EXPECT_EQ(values(imported(columns, kCopies)), (std::vector<std::int32_t>{0, 2, 4, 1, 3, 5}));
  ForeignTensor permuted(kInt32, kValues.data(), {1, 2, 3}, {6, 1, 2});
  const ImportedTensor lists =
      imported(permuted, {.dimensions = Dimensions::kFixedSizeLists, .strided = Strided::kCopy});
  EXPECT_EQ(values(lists), (std::vector<std::int32_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_STREQ(lists.schema->children[0]->format, "+w:3");
  ForeignTensor lanes({kDLInt, 32, 2}, kValues.data(), {2}, {3});
  EXPECT_EQ(values(imported(lanes, kCopies)), (std::vector<std::int32_t>{0, 1, 6, 7}));
  ForeignTensor complex({kDLComplex, 64, 1}, kValues.data(), {2}, {3});
  EXPECT_EQ(values(imported(complex, kCopies)), (std::vector<std::int32_t>{0, 1, 6, 7}));
}

TEST(DlpackImport, CopiesToCpu) {
  // Any memory that the host can read, with any device id.
  for (const DeviceInfo& device : kDevices) {
    if (!is_accessible(device.value, ARROW_DEVICE_CPU)) continue;
    for (const std::int32_t id : {0, 3}) {
      ForeignTensor tensor(kInt32, kValues.data(), {3}, {2});
      tensor->device = {static_cast<DLDeviceType>(device.value), id};
      const ImportedTensor result = imported(tensor, kCopies);
      EXPECT_EQ(result.array->device_type, ARROW_DEVICE_CPU) << device.name;
      EXPECT_EQ(result.array->device_id, -1) << device.name;
      EXPECT_EQ(values(result), (std::vector<std::int32_t>{0, 2, 4})) << device.name;
      ForeignLegacyTensor legacy(kInt32, kValues.data(), {3}, {2});
      legacy->device = {static_cast<DLDeviceType>(device.value), id};
      EXPECT_EQ(imported(legacy, kCopies).array->device_type, ARROW_DEVICE_CPU) << device.name;
    }
  }
}

TEST(DlpackImport, RejectsCopyOfDeviceMemory) {
  ForeignTensor tensor(kInt32, kValues.data(), {3}, {2});
  tensor->device = {kDLCUDA, 0};
  EXPECT_EQ(refused(tensor, kCopies).code(), ENOTSUP);
}

TEST(DlpackImport, RejectsOverflowingStrides) {
  for (const std::int64_t stride : {INT64_MAX, INT64_MIN, INT64_MAX / 4}) {
    ForeignTensor tensor(kInt32, kValues.data(), {3}, {stride});
    EXPECT_EQ(refused(tensor, kCopies).code(), EINVAL) << stride;
    ForeignTensor lanes({kDLInt, 32, 4}, kValues.data(), {3}, {stride});
    EXPECT_EQ(refused(lanes, kCopies).code(), EINVAL) << stride;
  }
}

TEST(DlpackImport, RequiresAlignedValues) {
  const auto* odd = reinterpret_cast<const unsigned char*>(kValues.data()) + 1;
  ForeignTensor tensor(kInt32, odd, {3});
  expect_mentions(refused(tensor), "multiple of 4 bytes");
  ForeignTensor copied(kInt32, odd, {3});
  ImportedTensor result = imported(copied, kCopies);
  EXPECT_TRUE(result.copied);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(result.array->array.buffers[1]) % 4, 0U);
  std::int32_t first = 0;
  std::memcpy(&first, odd, sizeof first);
  EXPECT_EQ(values(result)[0], first);
}

TEST(DlpackImport, RejectsMalformedTensors) {
  const auto malformed = [](ForeignTensor& tensor, std::string_view what) {
    const Error error = refused(tensor, kCopies);
    EXPECT_EQ(error.code(), EINVAL) << error.message();
    expect_mentions(error, "DLTensor." + std::string(what));
  };
  for (const std::int32_t ndim : {-1, INT32_MIN, 65, INT32_MAX}) {
    ForeignTensor tensor(kInt32, kValues.data(), {2});
    tensor->ndim = ndim;
    malformed(tensor, "ndim");
  }
  ForeignTensor shapeless(kInt32, kValues.data(), {2});
  shapeless->shape = nullptr;
  malformed(shapeless, "shape: NULL: expected ndim sizes");
  ForeignTensor negative(kInt32, kValues.data(), {2, -1});
  malformed(negative, "shape: negative size: expected 0 or more, got -1");
  ForeignTensor lowest(kInt32, kValues.data(), {INT64_MIN});
  malformed(lowest, "shape: negative size");
  ForeignTensor huge(kInt32, kValues.data(), {INT64_MAX});
  malformed(huge, "shape: size out of range");
  ForeignTensor overflow(kInt8, kValues.data(), {std::int64_t{1} << 32, std::int64_t{1} << 32});
  malformed(overflow, "shape: size out of range");
  ForeignTensor null(kInt32, nullptr, {1});
  malformed(null, "data: NULL");
  ForeignTensor offset(kInt32, kValues.data(), {1});
  offset->byte_offset = UINT64_MAX - 3;
  malformed(offset, "byte_offset");
  ForeignTensor handle(kInt32, kValues.data(), {1});
  handle->device = {kDLOpenCL, 0};
  handle->byte_offset = UINT64_MAX - 3;
  malformed(handle, "byte_offset");
}

TEST(DlpackImport, RejectsOversizedLists) {
  if constexpr (sizeof(void*) < 8) {
    GTEST_SKIP() << "pointers of 32 bits: such a tensor would not fit in memory, so its shape is "
                    "refused before";
  }
  ForeignTensor cell(kInt8, kValues.data(), {1, 65536, 65536});
  EXPECT_EQ(refused(cell).code(), ENOTSUP);
  ForeignTensor list(kInt8, kValues.data(), {1, std::int64_t{1} << 31});
  EXPECT_EQ(refused(list, kLists).code(), ENOTSUP);
}

TEST(DlpackImport, MovedChildKeepsMemory) {
  ForeignTensor tensor(kInt32, kValues.data(), {2, 3});
  ImportedTensor result = imported(tensor);
  Schema child_schema(result.schema->children[0]);
  result.schema.release();
  EXPECT_STREQ(child_schema->format, "i");
  Array child(result.array->array.children[0]);
  result.array.release();
  EXPECT_EQ(tensor.deleted, 0);
  EXPECT_EQ(child->length, 6);
  EXPECT_EQ(static_cast<const std::int32_t*>(child->buffers[1])[5], 5);
  child.release();
  EXPECT_EQ(tensor.deleted, 1);
}

TEST(Rules, DlpackAlignmentNotReliedOn) {
  ForeignTensor tensor(kInt32, kValues.data() + 1, {3});
  EXPECT_EQ(imported(tensor).array->array.buffers[1], kValues.data() + 1);
  // The sum must be aligned: data and byte_offset may each be unaligned.
  const auto* odd = reinterpret_cast<const unsigned char*>(kValues.data()) + 2;
  ForeignTensor between(kInt32, odd, {3});
  between->byte_offset = 6;
  EXPECT_EQ(imported(between).array->array.buffers[1], kValues.data() + 2);
}

TEST(Rules, DlpackByteOffsetApplied) {
  ForeignTensor tensor(kInt32, kValues.data(), {3});
  tensor->byte_offset = 8;
  EXPECT_EQ(values(imported(tensor)), (std::vector<std::int32_t>{2, 3, 4}));
  ForeignTensor handle(kInt32, kValues.data(), {2, 3});
  handle->byte_offset = 8;
  handle->device = {kDLOpenCL, 1};
  const ImportedTensor result = imported(handle);
  EXPECT_EQ(leaf(result.array->array).buffers[1], kValues.data());
  EXPECT_EQ(leaf(result.array->array).offset, 2);
  ForeignTensor between(kInt32, kValues.data(), {3});
  between->byte_offset = 6;
  between->device = {kDLOpenCL, 1};
  EXPECT_EQ(refused(between).code(), ENOTSUP);
  ForeignTensor copied(kInt32, kValues.data(), {2}, {2});
  copied->byte_offset = 4;
  EXPECT_EQ(values(imported(copied, kCopies)), (std::vector<std::int32_t>{1, 3}));
}

TEST(Rules, DeviceArrayDeviceIdConvention) {
  for (const std::int32_t id : {0, 5, -1}) {
    ForeignTensor tensor(kInt32, kValues.data(), {2});
    tensor->device = {kDLCPU, id};
    EXPECT_EQ(imported(tensor).array->device_id, -1);
  }
}

TEST(DlpackImport, KeepsUnknownDevices) {
  ForeignTensor tensor(kInt32, kValues.data(), {2});
  tensor->device = {static_cast<DLDeviceType>(9999), 4};
  ImportedTensor result = imported(tensor);
  EXPECT_EQ(result.array->device_type, 9999);
  EXPECT_EQ(result.array->device_id, 4);
  const Result<DlpackTensor> again = to_dlpack(*result.schema, result.array);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->dl_tensor.device.device_type, 9999);
  EXPECT_EQ((*again)->dl_tensor.device.device_id, 4);
}

TEST(Rules, DlpackTypeUnexpectedBitsRefused) {
  for (const int bits : {4, 6, 8, 32}) {
    for (const int code : {kDLFloat6_e2m3fn, kDLFloat6_e3m2fn, kDLFloat4_e2m1fn}) {
      ForeignTensor tensor({static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1},
                           kValues.data(), {2});
      EXPECT_EQ(refused(tensor, {.as_storage = true}).code(), ENOTSUP);
    }
  }
}

TEST(Rules, DlpackTypePackedUnlessFlagged) {
  // Neither form has an Arrow type; the error names the form.
  for (const auto& [flags, found] :
       {std::pair<std::uint64_t, const char*>{0, "packed"},
        {DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED, "packed"},
        {DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, "padded"}}) {
    for (const DLDataType type :
         {DLDataType{kDLInt, 4, 1}, {kDLUInt, 1, 1}, {kDLFloat6_e2m3fn, 6, 1}}) {
      ForeignTensor tensor(type, kValues.data(), {2});
      tensor.managed.flags = flags;
      const Error error = refused(tensor, {.as_storage = true});
      EXPECT_EQ(error.code(), ENOTSUP);
      expect_mentions(error, found);
    }
  }
  ForeignLegacyTensor legacy({kDLInt, 4, 1}, kValues.data(), {2});
  expect_mentions(refused(legacy, {.as_storage = true}), "packed");
  // The flag is ignored for types of whole bytes.
  ForeignTensor whole(kInt32, kValues.data(), {2});
  whole.managed.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  EXPECT_EQ(values(imported(whole)), (std::vector<std::int32_t>{0, 1}));
}

TEST(Rules, DlpackManagedMinorMismatch) {
  ForeignTensor newer(kInt32, kValues.data(), {2});
  newer.managed.version.minor = 99;
  EXPECT_EQ(imported(newer).array->array.length, 2);
  ForeignTensor unknown(kInt32, kValues.data(), {2});
  unknown.managed.version.minor = 99;
  unknown.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY | 8;
  EXPECT_TRUE(imported(unknown).read_only);
  EXPECT_EQ(unknown.deleted, 1);
}

TEST(DlpackImport, RejectsUnknownFlagsOfKnownVersion) {
  ForeignTensor unknown(kInt32, kValues.data(), {2});
  unknown.managed.flags = 8;
  expect_mentions(refused(unknown), "got 8");
}

TEST(Rules, DlpackManagedReadOnlyIgnored) {
  ForeignTensor tensor(kInt32, kValues.data(), {2});
  tensor.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  EXPECT_TRUE(imported(tensor).read_only);
  ForeignTensor writable(kInt32, kValues.data(), {2});
  EXPECT_FALSE(imported(writable).read_only);
  ForeignTensor copied(kInt32, kValues.data(), {2});
  copied.managed.flags = DLPACK_FLAG_BITMASK_IS_COPIED;
  EXPECT_TRUE(imported(copied).copied);
}

TEST(Rules, DlpackImportZeroCopy) {
  ForeignTensor tensor(kInt32, kValues.data(), {2, 3});
  const ImportedTensor result = imported(tensor, kCopies);
  EXPECT_EQ(leaf(result.array->array).buffers[1], kValues.data());
  EXPECT_FALSE(result.copied);
}

TEST(Rules, DlpackImportSameDevice) {
  for (const DeviceInfo& device : kDevices) {
    ForeignTensor tensor(kInt32, kValues.data(), {2});
    tensor->device = {static_cast<DLDeviceType>(device.value), 1};
    EXPECT_EQ(imported(tensor).array->device_type, device.value) << device.name;
  }
}

TEST(Rules, DlpackImportCopyNone) {
  ForeignTensor compact(kInt32, kValues.data(), {2, 3});
  EXPECT_FALSE(imported(compact, kCopies).copied) << "it can share the memory";
  ForeignTensor gaps(kInt32, kValues.data(), {3}, {2});
  const ImportedTensor copy = imported(gaps, kCopies);
  EXPECT_TRUE(copy.copied);
  EXPECT_EQ(values(copy), (std::vector<std::int32_t>{0, 2, 4}));
}

TEST(Rules, DlpackImportCopyFalse) {
  ForeignTensor tensor(kInt32, kValues.data(), {2}, {2});
  EXPECT_EQ(refused(tensor, {.strided = Strided::kRefuse}).code(), ENOTSUP);
}

}  // namespace
}  // namespace fletching::testing
