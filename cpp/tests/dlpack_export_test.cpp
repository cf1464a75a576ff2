// Device arrays exported as tensors.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dlpack_data.hpp"
#include "dlpack_exported.hpp"
#include "error_messages.hpp"
#include "fletching/dlpack.hpp"

namespace fletching::testing {
namespace {

constexpr std::array<std::int32_t, 24> kValues{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                               12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
TEST(DlpackExport, SharesMemory) {
  Data data("i", 6, kValues.data());
  DlpackTensor tensor = exported(data);
  EXPECT_EQ(tensor->dl_tensor.data, kValues.data());
  EXPECT_EQ(tensor->dl_tensor.byte_offset, 0U);
  EXPECT_EQ(tensor->dl_tensor.dtype.code, kDLInt);
  EXPECT_EQ(tensor->dl_tensor.dtype.bits, 32);
  EXPECT_EQ(tensor->dl_tensor.dtype.lanes, 1);
  EXPECT_EQ(extents(tensor->dl_tensor), Sizes{6});
  EXPECT_EQ(strides(tensor->dl_tensor), Sizes{1});
  EXPECT_EQ(data.releases(), 0);
  tensor.release();
  EXPECT_EQ(data.releases(), 1);
}

TEST(DlpackExport, AppliesOffset) {
  Data data("i", 4, kValues.data());
  DlpackTensor tensor = exported(data.offset(5));
  EXPECT_EQ(tensor->dl_tensor.data, kValues.data() + 5);
  EXPECT_EQ(extents(tensor->dl_tensor), Sizes{4});
}

// byte_offset is 0 for every offset, for consumers that ignore it.
TEST(DlpackExport, ByteOffsetIsZeroByDefault) {
  for (std::int64_t offset = 0; offset < 20; ++offset) {
    Data data("i", 4, kValues.data());
    DlpackTensor tensor = exported(data.offset(offset));
    EXPECT_EQ(tensor->dl_tensor.data, kValues.data() + offset);
    EXPECT_EQ(tensor->dl_tensor.byte_offset, 0U);
  }
}

TEST(DlpackExport, HandleDevicesUseByteOffset) {
  for (const ArrowDeviceType device : {ARROW_DEVICE_OPENCL, ARROW_DEVICE_VULKAN, 9999}) {
    Data data("i", 4, kValues.data());
    DlpackTensor tensor = exported(data.offset(5).on(device, 3));
    EXPECT_EQ(tensor->dl_tensor.data, kValues.data()) << device;
    EXPECT_EQ(tensor->dl_tensor.byte_offset, 20U) << device;
    EXPECT_EQ(tensor->dl_tensor.device.device_type, device);
    EXPECT_EQ(tensor->dl_tensor.device.device_id, 3);
  }
}

TEST(DlpackExport, ConvertsListsToDimensions) {
  Data values("i", 24, kValues.data());
  Data inner("+w:3", 8);
  Data outer("+w:2", 3);
  DlpackTensor tensor = exported(outer.child(inner.child(values)).offset(1));
  EXPECT_EQ(extents(tensor->dl_tensor), (Sizes{3, 2, 3}));
  EXPECT_EQ(strides(tensor->dl_tensor), (Sizes{6, 3, 1}));
  EXPECT_EQ(tensor->dl_tensor.data, kValues.data() + 6);
}

TEST(DlpackExport, AddsChildOffsets) {
  Data values("i", 20, kValues.data());
  Data lists("+w:4", 2);
  DlpackTensor tensor = exported(lists.child(values.offset(3)).offset(1));
  EXPECT_EQ(tensor->dl_tensor.data, kValues.data() + 3 + 4);
}

TEST(DlpackExport, PermutesTensors) {
  Data values("i", 12, kValues.data());
  Data tensors("+w:6", 2);
  tensors.child(values).extension(
      kFixedShapeTensorName, R"({"shape":[2,3],"permutation":[1,0],"dim_names":["a","\"b]"]})");
  DlpackTensor tensor = exported(tensors);
  EXPECT_EQ(extents(tensor->dl_tensor), (Sizes{2, 3, 2}));
  EXPECT_EQ(strides(tensor->dl_tensor), (Sizes{6, 1, 3}));
}

TEST(DlpackExport, ConvertsBool8ToBool) {
  Data data("c", 3, "\1\0\1");
  DlpackTensor tensor = exported(data.extension(kBool8));
  EXPECT_EQ(tensor->dl_tensor.dtype.code, kDLBool);
  EXPECT_EQ(tensor->dl_tensor.dtype.bits, 8);
  Data wrong("i", 3, kValues.data());
  EXPECT_EQ(refused(wrong.extension(kBool8)).code(), EINVAL);
}

struct TypeRow {
  const char* format;
  int code;  // -1: rejected
  int bits;
  bool storage_only;
};

constexpr TypeRow kTypes[] = {
    {"c", kDLInt, 8, false},
    {"C", kDLUInt, 8, false},
    {"s", kDLInt, 16, false},
    {"S", kDLUInt, 16, false},
    {"i", kDLInt, 32, false},
    {"I", kDLUInt, 32, false},
    {"l", kDLInt, 64, false},
    {"L", kDLUInt, 64, false},
    {"e", kDLFloat, 16, false},
    {"f", kDLFloat, 32, false},
    {"g", kDLFloat, 64, false},
    {"tdD", kDLInt, 32, true},
    {"tdm", kDLInt, 64, true},
    {"tts", kDLInt, 32, true},
    {"ttm", kDLInt, 32, true},
    {"ttu", kDLInt, 64, true},
    {"ttn", kDLInt, 64, true},
    {"tss:", kDLInt, 64, true},
    {"tsm:UTC", kDLInt, 64, true},
    {"tsu:", kDLInt, 64, true},
    {"tsn:", kDLInt, 64, true},
    {"tDs", kDLInt, 64, true},
    {"tDm", kDLInt, 64, true},
    {"tDu", kDLInt, 64, true},
    {"tDn", kDLInt, 64, true},
    {"tiM", kDLInt, 32, true},
    {"d:9,2,32", kDLInt, 32, true},
    {"d:18,2,64", kDLInt, 64, true},
    {"w:3", kDLUInt, 8, true},
    {"n", -1, 0, false},
    {"b", -1, 0, false},
    {"d:19,10", -1, 0, false},
    {"d:39,2,256", -1, 0, false},
    {"tiD", -1, 0, false},
    {"tin", -1, 0, false},
    {"z", -1, 0, false},
    {"Z", -1, 0, false},
    {"vz", -1, 0, false},
    {"u", -1, 0, false},
    {"U", -1, 0, false},
    {"vu", -1, 0, false},
    {"+l", -1, 0, false},
    {"+L", -1, 0, false},
    {"+vl", -1, 0, false},
    {"+vL", -1, 0, false},
    {"+s", -1, 0, false},
    {"+m", -1, 0, false},
    {"+ud:0", -1, 0, false},
    {"+us:0", -1, 0, false},
    {"+r", -1, 0, false},
};

TEST(DlpackExport, AcceptsOrRejectsEveryType) {
  for (const TypeRow& row : kTypes) {
    Data plain(row.format, 2, kValues.data());
    plain.buffers(3);
    if (row.code >= 0 && !row.storage_only) {
      const DlpackTensor tensor = exported(plain);
      EXPECT_EQ(tensor->dl_tensor.dtype.code, row.code) << row.format;
      EXPECT_EQ(tensor->dl_tensor.dtype.bits, row.bits) << row.format;
    } else {
      EXPECT_EQ(refused(plain).code(), ENOTSUP) << row.format;
    }
    Data stored(row.format, 2, kValues.data());
    stored.buffers(3);
    if (row.code < 0) {
      EXPECT_EQ(refused(stored, {.as_storage = true}).code(), ENOTSUP) << row.format;
      continue;
    }
    const DlpackTensor tensor = exported(stored, {.as_storage = true});
    EXPECT_EQ(tensor->dl_tensor.dtype.code, row.code) << row.format;
    EXPECT_EQ(tensor->dl_tensor.dtype.bits, row.bits) << row.format;
  }
}

TEST(DlpackExport, ErrorNamesFix) {
  Data bits("b", 3, "\5");
  expect_mentions(refused(bits), "arrow.bool8");
  Data times("tsu:UTC", 3, kValues.data());
  expect_mentions(refused(times), "as_storage");
}

TEST(DlpackExport, AddsDimensionForBinary) {
  Data data("w:3", 2, "abcdefghi");
  DlpackTensor tensor = exported(data.offset(1), {.as_storage = true});
  EXPECT_EQ(extents(tensor->dl_tensor), (Sizes{2, 3}));
  EXPECT_EQ(std::string_view(static_cast<const char*>(tensor->dl_tensor.data), 6), "defghi");
}

TEST(DlpackExport, RejectsExtensionWithoutAsStorage) {
  Data extension("i", 2, kValues.data());
  extension.extension("example.degrees");
  expect_mentions(refused(extension), "example.degrees");
  EXPECT_TRUE(exported(extension, {.as_storage = true}));
  Data encoded("i", 2, kValues.data());
  expect_mentions(refused(encoded.dictionary()), "dictionary");
  EXPECT_TRUE(exported(encoded, {.as_storage = true}));
}

TEST(DlpackExport, RejectsUnhandledEvent) {
  Data data("i", 3, kValues.data());
  data.on(ARROW_DEVICE_CUDA, 1).event(&data);
  expect_mentions(refused(data), "sync_event");
  EXPECT_TRUE(exported(data, {.event_handled = true}));
}

TEST(DlpackExport, RejectsReleasedStructs) {
  Data data("i", 3, kValues.data());
  Schema schema = data.schema();
  DeviceArray released;
  EXPECT_EQ(to_dlpack(*schema, released).error().code(), EINVAL);
  schema.release();
  DeviceArray array = data.array();
  EXPECT_EQ(to_dlpack(*schema, array).error().code(), EINVAL);
}

TEST(DlpackExport, RejectsMalformedArrays) {
  const auto malformed = [](Data& data) { EXPECT_EQ(refused(data).code(), EINVAL); };
  Data negative("i", -1, kValues.data());
  malformed(negative);
  Data offset("i", 1, kValues.data());
  malformed(offset.offset(-1));
  Data in_child("i", 1, kValues.data());
  in_child.offset(-1);
  Data lists("+w:1", 1);
  malformed(lists.child(in_child));
  Data far("l", 1, kValues.data());
  malformed(far.offset(INT64_MAX));
  Data beyond("l", INT64_MAX / 8, kValues.data());
  malformed(beyond.offset(INT64_MAX / 16));
  Data no_values("i", 1, nullptr);
  malformed(no_values.buffers(2));
  Data few_buffers("i", 1, kValues.data());
  malformed(few_buffers.buffers(1));
  Data unknown("?", 1, kValues.data());
  malformed(unknown);
  Data childless("+w:2", 1);
  malformed(childless);
}

// One wrong part at a time, in the schema or in the array.
TEST(DlpackExport, RejectsListWithoutExactlyOneChild) {
  const auto code = [](const auto& spoil) {
    Data values("i", 6, kValues.data());
    Data lists("+w:3", 2);
    lists.child(values);
    Schema schema = lists.schema();
    DeviceArray array = lists.array();
    const ArrowArray whole = array->array;
    ArrowArray* const child = whole.children[0];
    spoil(*schema, array->array);
    const auto exported = to_dlpack(*schema, array);
    if (exported.ok()) return 0;
    array->array = whole;  // for the release
    whole.children[0] = child;
    return exported.error().code();
  };
  EXPECT_EQ(code([](ArrowSchema&, ArrowArray&) {}), 0);
  EXPECT_EQ(code([](ArrowSchema& schema, ArrowArray&) { schema.n_children = 2; }), EINVAL);
  EXPECT_EQ(code([](ArrowSchema& schema, ArrowArray&) { schema.children = nullptr; }), EINVAL);
  EXPECT_EQ(code([](ArrowSchema& schema, ArrowArray&) { schema.children[0] = nullptr; }), EINVAL);
  EXPECT_EQ(code([](ArrowSchema&, ArrowArray& array) { array.n_children = 2; }), EINVAL);
  EXPECT_EQ(code([](ArrowSchema&, ArrowArray& array) { array.children = nullptr; }), EINVAL);
  EXPECT_EQ(code([](ArrowSchema&, ArrowArray& array) { array.children[0] = nullptr; }), EINVAL);
}

TEST(DlpackExport, RejectsOversizedLists) {
  Data values("i", 5, kValues.data());
  Data lists("+w:3", 2);
  EXPECT_EQ(refused(lists.child(values)).code(), EINVAL);
  Data six("i", 6, kValues.data());
  Data tensors("+w:3", 2);
  tensors.child(six).extension(kFixedShapeTensorName, R"({"shape":[2,2]})");
  expect_mentions(refused(tensors), "got 3");
  Data far("i", 6, kValues.data());
  Data huge("+w:2147483647", INT64_MAX / 2);
  EXPECT_EQ(refused(huge.child(far)).code(), EINVAL);
}

TEST(DlpackExport, RejectsTooManyDimensions) {
  std::vector<std::unique_ptr<Data>> levels;
  levels.push_back(std::make_unique<Data>("i", 1, kValues.data()));
  for (std::size_t i = 0; i < kDlpackDimensions; ++i) {
    levels.push_back(std::make_unique<Data>("+w:1", 1));
    levels.back()->child(*levels[i]);
  }
  expect_mentions(refused(*levels.back()), "at most 64");
  DlpackTensor tensor = exported(*levels[levels.size() - 2]);
  EXPECT_EQ(tensor->dl_tensor.ndim, 64);
}

TEST(DlpackExport, RejectsDeviceIdOutOfRange) {
  Data data("i", 1, kValues.data());
  EXPECT_EQ(refused(data.on(ARROW_DEVICE_CUDA, std::int64_t{1} << 40)).code(), ERANGE);
}

/// The shape of a tensor of `size` elements with these parameters; empty if it is rejected.
Sizes shape_of(const std::string& parameters, int size) {
  Data values("i", size, kValues.data());
  Data tensors("+w:" + std::to_string(size), 1);
  tensors.child(values).extension(kFixedShapeTensorName, parameters);
  Schema schema = tensors.schema();
  DeviceArray array = tensors.array();
  Result<DlpackTensor> tensor = to_dlpack(*schema, array);
  if (tensor) return extents((*tensor)->dl_tensor);
  EXPECT_EQ(tensor.error().code(), EINVAL) << parameters;
  return {};
}

TEST(DlpackExport, ReadsTensorParameters) {
  EXPECT_EQ(shape_of(R"( { "x" : {"a":[1,{}]}, "shape" : [ 2 , 3 ] } )", 6), (Sizes{1, 2, 3}));
  EXPECT_EQ(shape_of(R"({"shape":[2],"permutation":null,"dim_names":null})", 2), (Sizes{1, 2}));
  for (const std::string text :
       {"", "{", "{}", "[]", "null", R"({"shape":[]})", R"({"shape":[2})", R"({"shape":[-1]})",
        R"({"shape":[2.5]})", R"({"shape":["2"]})", R"({"shape":2})", R"({"shape":[2]} x)",
        R"({"shape":[2],})", R"({"shape":[99999999999999999999]})", R"({"shape":[2],"x":"})"}) {
    EXPECT_EQ(shape_of(text, 2), Sizes{}) << text;
  }
  for (const std::string axes : {"[0]", "[0,0]", "[0,2]", "[0,-1]"}) {
    EXPECT_EQ(shape_of(R"({"shape":[2,3],"permutation":)" + axes + "}", 6), Sizes{}) << axes;
  }
  EXPECT_EQ(shape_of(R"({"x":)" + std::string(100000, '['), 2), Sizes{});
  std::string axes = "[1,0";  // the 65th, stored behind the others, would be the numbers of both
  for (std::size_t i = 2; i < kDlpackDimensions; ++i) axes += ",0";
  axes += "," + std::to_string((std::int64_t{1} << 32) + 2) + "]";
  EXPECT_EQ(shape_of(R"({"shape":[2,3],"permutation":)" + axes + "}", 6), Sizes{});
}

TEST(DlpackExport, RejectsTensorExtensionWithTooManyDimensions) {
  for (const int more : {64, 5000}) {
    std::string long_list = R"({"shape":[1)";
    for (int i = 0; i < more; ++i) long_list += ",1";
    Data values("i", 1, kValues.data());
    Data tensors("+w:1", 1);
    tensors.child(values).extension(kFixedShapeTensorName, long_list + "]}");
    const Error error = refused(tensors);
    EXPECT_EQ(error.code(), ENOTSUP) << more;
    expect_mentions(error, "at most 64");
  }
}

TEST(DlpackExport, ReadsOnlyDlpackOpaqueTypes) {
  const auto code_of_type = [](const std::string& parameters) {
    Data data("S", 2, kValues.data());
    data.extension(kOpaque, parameters);
    Schema schema = data.schema();
    DeviceArray array = data.array();
    Result<DlpackTensor> tensor = to_dlpack(*schema, array);
    return tensor ? int{(*tensor)->dl_tensor.dtype.code} : -tensor.error().code();
  };
  EXPECT_EQ(code_of_type(R"({"type_name":"bfloat16","vendor_name":"DLPack"})"), kDLBfloat);
  EXPECT_EQ(code_of_type(R"({"x":[1], "vendor_name": "DLPack", "type_name" : "bfloat16" })"),
            kDLBfloat);
  for (const std::string parameters :
       {R"({"type_name":"bfloat16","vendor_name":"Other"})", R"({"type_name":"bfloat16"})",
        R"({"type_name":"bfloat","vendor_name":"DLPack"})",
        R"({"type_name":"bfloat16","vendor_name":"DLPack")", ""}) {
    EXPECT_EQ(code_of_type(parameters), -ENOTSUP) << parameters;
  }
  // Types with a different storage.
  EXPECT_EQ(code_of_type(R"({"type_name":"complex64","vendor_name":"DLPack"})"), -EINVAL);
  EXPECT_EQ(code_of_type(R"({"type_name":"float8_e5m2","vendor_name":"DLPack"})"), -EINVAL);
}

// Odd offsets: a complex number may begin at any part.
TEST(DlpackExport, ComplexNumberStartsAtOddOffset) {
  Data parts("f", 10, kValues.data());
  Data numbers("+w:2", 3);
  numbers.child(parts.offset(3))
      .offset(1)
      .extension(kOpaque, R"({"type_name":"complex64","vendor_name":"DLPack"})");
  DlpackTensor tensor = exported(numbers);
  EXPECT_EQ(tensor->dl_tensor.data, kValues.data() + 3 + 2);
  EXPECT_EQ(extents(tensor->dl_tensor), Sizes{3});
  const std::uint8_t bits = 0b11011111;
  Data part("f", 6, kValues.data());
  Data nulls("+w:2", 3);
  nulls.child(part.nulls(1, &bits))
      .extension(kOpaque, R"({"type_name":"complex64","vendor_name":"DLPack"})");
  expect_mentions(refused(nulls), "has nulls");
}

TEST(DlpackExport, QuotesFormatInError) {
  Data odd("\x1f \"\\\xff" + std::string(70, 'x'), 1, kValues.data());
  expect_mentions(refused(odd), R"(got "\x1f \"\\\xff)" + std::string(59, 'x') + "...\"");
}

TEST(DlpackExport, RejectsNegativeMetadataCounts) {
  Data data("i", 1, kValues.data());
  Schema schema = data.schema();
  const std::int32_t count = -1;
  schema->metadata = reinterpret_cast<const char*>(&count);
  DeviceArray array = data.array();
  EXPECT_EQ(to_dlpack(*schema, array).error().code(), EINVAL);
}

TEST(Rules, DlpackDataAligned) {
  for (std::int64_t offset = 0; offset < 20; ++offset) {
    Data data("i", 4, kValues.data());
    DlpackTensor tensor = exported(data.offset(offset), {.pointer = DataPointer::kAligned});
    const auto address = reinterpret_cast<std::uintptr_t>(tensor->dl_tensor.data);
    EXPECT_EQ(address % 256, 0U);
    EXPECT_LT(tensor->dl_tensor.byte_offset, 256U);
    EXPECT_EQ(address + tensor->dl_tensor.byte_offset,
              reinterpret_cast<std::uintptr_t>(kValues.data() + offset));
  }
}

TEST(Rules, DlpackDeviceIdOfCpu) {
  for (const ArrowDeviceType device : {ARROW_DEVICE_CPU, ARROW_DEVICE_CUDA_HOST,
                                       ARROW_DEVICE_ROCM_HOST, ARROW_DEVICE_CUDA_MANAGED}) {
    for (const std::int64_t id : {-1, 0, 1}) {
      Data data("i", 4, kValues.data());
      EXPECT_EQ(exported(data.on(device, id))->dl_tensor.device.device_id, 0) << device;
    }
  }
  Data data("i", 4, kValues.data());
  EXPECT_EQ(exported(data.on(ARROW_DEVICE_CUDA, 1))->dl_tensor.device.device_id, 1);
}

TEST(DlpackTensor, OnlyReleaseCallsDeleter) {
  ForeignTensor first(kInt32, kValues.data(), {2});
  DlpackTensor owner = first.take();
  EXPECT_EQ(owner.detach(), &first.managed);
  EXPECT_FALSE(owner);
  EXPECT_EQ(owner.detach(), nullptr);
  owner.release();
  EXPECT_EQ(first.deleted, 0);
  owner = first.take();
  owner.release();
  owner.release();
  EXPECT_EQ(first.deleted, 1);
}

TEST(DlpackTensor, AssignmentDeletesOnlyOldTensor) {
  ForeignTensor first(kInt32, kValues.data(), {2});
  ForeignTensor second(kInt32, kValues.data(), {2});
  {
    DlpackTensor owner = first.take();
    owner = second.take();
    EXPECT_EQ(first.deleted, 1);
    DlpackTensor* const same = &owner;
    owner = std::move(*same);
    EXPECT_EQ(owner.get(), &second.managed);
    DlpackTensor moved = std::move(owner);
    EXPECT_EQ(&*moved, &second.managed);
    EXPECT_EQ(second.deleted, 0);
  }
  EXPECT_EQ(second.deleted, 1);
}

TEST(DlpackTensor, AcceptsNullDeleter) {
  ForeignTensor tensor(kInt32, kValues.data(), {2});
  tensor.managed.deleter = nullptr;
  tensor.take().release();
  EXPECT_EQ(tensor.deleted, 0);
}

TEST(Rules, DlpackManagedCopiedFlag) {
  Data data("i", 4, kValues.data());
  EXPECT_EQ(exported(data, {.read_only = false, .copied = true})->flags,
            DLPACK_FLAG_BITMASK_IS_COPIED);
}

}  // namespace
}  // namespace fletching::testing
