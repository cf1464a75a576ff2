// Rules of the data and device data interfaces that no single header implements: ownership, access,
// and the requirements for reading an array. Broken arrays are passed to the DLPack export, which
// reads arrays itself.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "dlpack_data.hpp"
#include "fletching/array_builder.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/schema_builder.hpp"
#include "fletching/shared.hpp"
#include "foreign.hpp"

namespace fletching::testing {
namespace {

alignas(8) constexpr std::array<std::int32_t, 4> kValues{1, 2, 3, 4};

int code_of_export(Data& data, const DlpackExportOptions& options = {}) {
  const Schema schema = data.schema();
  DeviceArray array = data.array();
  const Result<DlpackTensor> tensor = to_dlpack(*schema, array, options);
  return tensor.ok() ? 0 : tensor.error().code();
}

// --- Schemas ---

TEST(Rules, SchemaExtensionStorage) {
  Data booleans("c", 3, kValues.data());
  booleans.extension("arrow.bool8");
  EXPECT_EQ(code_of_export(booleans), 0);
  for (const char* storage : {"C", "i", "b"}) {
    Data wrong(storage, 3, kValues.data());
    wrong.extension("arrow.bool8");
    EXPECT_NE(code_of_export(wrong), 0) << storage;
  }
  // The library's arrays have the format of their storage.
  ForeignTensor tensor({kDLBool, 8, 1}, kValues.data(), {2});
  EXPECT_STREQ(from_dlpack(tensor.take()).value().schema->format, "c");
}

TEST(Rules, SchemaExtensionKeys) {
  ForeignTensor tensor(kInt32, kValues.data(), {1, 2, 2});
  const ImportedTensor imported = from_dlpack(tensor.take()).value();
  const MetadataView metadata = imported.schema.metadata().value();
  EXPECT_EQ(metadata.find("ARROW:extension:name"), "arrow.fixed_shape_tensor");
  EXPECT_EQ(metadata.find("ARROW:extension:metadata"), R"({"shape":[2,2]})");
  // Under another key the name is not an extension type: plain bytes are exported.
  const std::string other = encode_metadata({{"arrow:extension:name", "arrow.bool8"}}).value();
  Data bytes("c", 3, kValues.data());
  Schema schema = bytes.schema();
  schema->metadata = other.data();
  DeviceArray array = bytes.array();
  EXPECT_EQ(to_dlpack(*schema, array).value()->dl_tensor.dtype.code, kDLInt);
}

// --- Requirements for reading an array ---

TEST(Rules, ArrayNullCountUnknownAccepted) {
  const std::uint8_t all = 0xff;
  const std::uint8_t third_is_null = 0xfb;
  Data full("i", 3, kValues.data());
  EXPECT_EQ(code_of_export(full.nulls(-1, &all)), 0);
  Data nulls("i", 3, kValues.data());
  EXPECT_EQ(code_of_export(nulls.nulls(-1, &third_is_null)), ENOTSUP) << "there is a null";
}

TEST(Rules, ArrayNBuffersOfType) {
  for (const std::int64_t buffers : {std::int64_t{1}, std::int64_t{0}, std::int64_t{-1}}) {
    Data data("i", 3, kValues.data());
    EXPECT_EQ(code_of_export(data.buffers(buffers)), EINVAL) << buffers;
  }
}

TEST(Rules, ArrayBuffersNullOnlyWhen) {
  Data no_values("i", 3);
  EXPECT_EQ(code_of_export(no_values.buffers(2)), EINVAL) << "three values nowhere";
  Data no_bitmap("i", 3, kValues.data());
  EXPECT_EQ(code_of_export(no_bitmap.nulls(1, nullptr)), EINVAL) << "a null, and no bitmap";
}

TEST(Rules, ArrayBuffersNullAccepted) {
  Data empty("i", 0);
  EXPECT_EQ(code_of_export(empty.buffers(2)), 0);
  for (const std::int64_t null_count : {0, -1}) {
    Data no_bitmap("i", 3, kValues.data());
    EXPECT_EQ(code_of_export(no_bitmap.nulls(null_count, nullptr)), 0) << null_count;
  }
}

// As a producer: an unaligned tensor is rejected, or copied to aligned memory.
TEST(Rules, ArrayBuffersAligned) {
  const auto* odd = reinterpret_cast<const unsigned char*>(kValues.data()) + 1;
  ForeignTensor refused(kInt32, odd, {2});
  EXPECT_EQ(from_dlpack(refused.take()).error().code(), ENOTSUP);
  ForeignTensor copied(kInt32, odd, {2});
  const ImportedTensor copy = from_dlpack(copied.take(), {.strided = Strided::kCopy}).value();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(copy.array->array.buffers[1]) % 4, 0U);
}

TEST(Rules, ArrayNChildrenOfType) {
  Data values("i", 4, kValues.data());
  Data lists("+w:2", 2);
  EXPECT_EQ(code_of_export(lists.child(values)), 0);
  Data childless("+w:2", 2);
  EXPECT_EQ(code_of_export(childless), EINVAL);
}

// A tensor's consumer is told that it is read-only, unless the caller has allowed writing.
TEST(Rules, ArrayDataImmutable) {
  Data data("i", 3, kValues.data());
  const Schema schema = data.schema();
  DeviceArray array = data.array();
  EXPECT_EQ(to_dlpack(*schema, array).value()->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  Data other("i", 3, kValues.data());
  array = other.array();
  EXPECT_EQ(to_legacy_dlpack(*schema, array, {}).error().code(), EINVAL);
  EXPECT_TRUE(to_legacy_dlpack(*schema, array, {.read_only = false}));
}

// --- Allocation and release ---

/// Sets the flag during its lifetime.
struct LifetimeFlag {
  explicit LifetimeFlag(bool* flag) : flag(flag) { *flag = true; }
  LifetimeFlag(LifetimeFlag&& other) noexcept : flag(std::exchange(other.flag, nullptr)) {}
  LifetimeFlag(const LifetimeFlag&) = delete;
  LifetimeFlag& operator=(const LifetimeFlag&) = delete;
  LifetimeFlag& operator=(LifetimeFlag&&) = delete;
  ~LifetimeFlag() {
    if (flag != nullptr) *flag = false;
  }
  bool* flag;
  void* handle = nullptr;  // sync_event is its address
};

TEST(Rules, ReleaseMembersOwnedByProducer) {
  auto names = std::make_unique<std::string>("a name that is longer than what a string holds");
  Schema schema = make_schema({.format = "i", .name = *names}).value();
  names->assign("?");
  names.reset();
  EXPECT_EQ(schema.name(), "a name that is longer than what a string holds");

  bool alive = false;
  auto builder = build_array({.buffers = 2}, LifetimeFlag(&alive)).value();
  builder.set(builder.root(), {.length = 4}, {nullptr, kValues.data()});
  Array array = builder.finish().value();
  Array moved = std::move(array);
  EXPECT_TRUE(alive);
  EXPECT_EQ(moved->buffers[1], kValues.data());
  moved.release();
  EXPECT_FALSE(alive);
}

TEST(Rules, DeviceArrayMembersOwnedByProducer) {
  bool alive = false;
  auto builder = build_array({.arrays = 1, .buffers = 3}, LifetimeFlag(&alive)).value();
  builder.set(builder.root(), {.length = 4}, {nullptr});
  for (ArrowArray& child : builder.add_children(builder.root(), 1)) {
    builder.set(child, {.length = 4}, {nullptr, kValues.data()});
  }
  DeviceArray array = builder.finish(ARROW_DEVICE_CUDA, 0, &builder.object().handle).value();
  DeviceArray child = array.take_child(0).value();
  EXPECT_EQ(child->sync_event, array->sync_event);
  array.release();
  EXPECT_TRUE(alive) << "the event of the child";
  child.release();
  EXPECT_FALSE(alive);
}

TEST(Rules, ReleaseNoAccessAfter) {
  static std::unique_ptr<std::array<ArrowArray*, 1>> list;
  list = std::make_unique<std::array<ArrowArray*, 1>>();
  ArrowDeviceArray raw{};
  raw.device_type = ARROW_DEVICE_CPU;
  raw.array.n_children = 1;
  raw.array.children = list->data();
  raw.array.release = [](ArrowArray* self) {
    list.reset();
    std::memset(static_cast<void*>(self), 0xA5, sizeof *self);  // overwrites it with garbage
    self->release = nullptr;
  };
  DeviceArray array(&raw);
  array.release();
  EXPECT_EQ(array.length(), 0);
  EXPECT_EQ(array.null_count(), 0);
  EXPECT_EQ(array.device_type(), 0);
  EXPECT_TRUE(array.children().empty());
  EXPECT_FALSE(array.take_child(0));
  EXPECT_FALSE(array.take_dictionary());
  EXPECT_FALSE(attach(array, std::make_unique<int>(1)));
  EXPECT_FALSE(Shared<ArrowDeviceArray>::make(std::move(array)));
}

// Parent and children are moved, and their old places contain garbage at release.
TEST(Rules, MoveNoStoredAddress) {
  bool alive = false;
  auto builder = build_array({.arrays = 1, .buffers = 3}, LifetimeFlag(&alive)).value();
  builder.set(builder.root(), {.length = 4}, {nullptr});
  for (ArrowArray& child : builder.add_children(builder.root(), 1)) {
    builder.set(child, {.length = 4}, {nullptr, kValues.data()});
  }
  Array array = builder.finish().value();
  const auto move = [](ArrowArray* from, ArrowArray* to) {
    *to = *from;
    std::memset(static_cast<void*>(from), 0xA5, sizeof *from);
    from->release = nullptr;
  };
  ArrowArray child;
  move(array->children[0], &child);
  ArrowArray parent;
  move(array.get(), &parent);
  parent.release(&parent);
  EXPECT_EQ(parent.release, nullptr);
  EXPECT_TRUE(alive);
  child.release(&child);
  EXPECT_EQ(child.release, nullptr);
  EXPECT_FALSE(alive);
}

}  // namespace
}  // namespace fletching::testing
