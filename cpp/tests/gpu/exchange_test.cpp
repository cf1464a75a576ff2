// SPDX-License-Identifier: Apache-2.0
//
// DLPack and the CUDA Array Interface behind a gate: events become stream waits, and streams
// events. On the stand-in driver, and on a device where NVIDIA's library is loaded in its place.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../released_array.hpp"
#include "api.hpp"
#include "control.hpp"
#include "fletching/array_builder.hpp"
#include "fletching/cuda_array.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/schema_builder.hpp"

namespace fletching::testing {
namespace {

namespace cai = cuda_array_interface;
using Api = CudaApi;

constexpr std::int32_t kOld = 0;
constexpr std::int32_t kNew = 0x01010101;

struct AddRelease {
  void operator()(Releases* releases) const { releases->add(); }
};
/// Counts when it is destroyed.
using Counted = std::unique_ptr<Releases, AddRelease>;

template <class T>
std::string message(const Result<T>& result) {
  return result.ok() ? std::string("no error") : result.error().message();
}

void expect_mentions(const Error& error, std::string_view text) {
  EXPECT_NE(error.message().find(text), std::string::npos) << error.message();
}

void* stream_named(const cai::Interface& says) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(says.stream.value_or(0)));
}

/// A work stream of the producer behind a gate, a stream of the consumer, four bytes of the device.
class Exchange : public ::testing::Test {
 protected:
  void SetUp() override {
    if (auto loaded = Api::load(); !loaded) GTEST_SKIP() << loaded.error().message();
    if (Api::devices() == 0) GTEST_SKIP() << Api::kRuntime.title << ": there is no device";
    if (control_.is_there()) {
      control_.reset_faults();
      before_ = control_.alive();
    } else {
      Api::keep_device(0);
    }
    Api::open_device(0);
    is_open_ = true;
    producer_ = Api::make_stream();
    consumer_ = Api::make_stream();
    memory_ = Api::allocate();
    gate_ = static_cast<std::int32_t*>(Api::allocate_pinned());
    read_ = static_cast<std::int32_t*>(Api::allocate_pinned());
    *gate_ = 0;
    Api::fill(memory_, 0, producer_);
    Api::synchronize(producer_);
    if (control_.is_there()) during_ = control_.alive();
  }

  void TearDown() override {
    if (!is_open_) return;
    open_gate();
    EXPECT_TRUE(releases_.wait_for(made_));
    // While the context is there: an event that outlives it cannot be destroyed any more.
    EXPECT_TRUE(!control_.is_there() || is_alive(during_)) << "something leaks";
    Api::destroy_stream(producer_);
    Api::destroy_stream(consumer_);
    Api::free(memory_);
    Api::free_pinned(gate_);
    Api::free_pinned(read_);
    Api::close_device(0);
    if (!control_.is_there()) return;
    control_.reset_faults();
    EXPECT_TRUE(is_alive(before_)) << "something leaks";
  }

  // What was released behind a stream goes later, on another thread, its event last of all. Gives
  // up, and fails, after a minute.
  bool is_alive(const FletchingStandinCounts& wanted) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!same(control_.alive(), wanted)) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

  void open_gate() { std::atomic_ref<std::int32_t>(*gate_).store(1, std::memory_order_release); }
  void write_behind_gate() {
    Api::wait_for_word(producer_, gate_);
    Api::fill(memory_, 1, producer_);
  }
  std::int32_t read_on(void* stream) {
    Api::read(read_, memory_, stream);
    Api::synchronize(stream);
    return *read_;
  }

  [[nodiscard]] const void* data() const { return reinterpret_cast<const void*>(memory_); }

  /// One int32 in the memory, or what else is said.
  DeviceArray make(const ArrayValues& values = {.length = 1}, const void* bitmap = nullptr,
                   ArrowDeviceType type = ARROW_DEVICE_CUDA) {
    auto builder = build_array({.buffers = 2}, Counted(&releases_));
    if (!builder) return {};
    builder->set(builder->root(), values, {bitmap, data()});
    Result<DeviceArray> array = builder->finish(type, 0);
    ++made_;
    return array ? *std::move(array) : DeviceArray();
  }

  DeviceArray make_with_event() {
    DeviceArray array = make();
    const Status exported = export_with_event(array, producer_);
    EXPECT_TRUE(exported) << message(exported);
    return array;
  }

  CudaArray described(DeviceArray array, std::optional<void*> stream = {},
                      const CudaArrayExportOptions& options = {}, std::string_view format = "i") {
    const Schema schema = make_schema({.format = format}).value();
    Result<CudaArray> result = to_cuda_array(*schema.get(), array, stream, options);
    EXPECT_TRUE(result) << message(result);
    return result ? *std::move(result) : CudaArray(nullptr);
  }

  /// What another library would say of the memory.
  cai::Interface says(std::optional<std::int64_t> stream = {}) const {
    cai::Interface interface;
    interface.shape = kOne;
    interface.typestr = "<i4";
    interface.pointer = memory_;
    interface.stream = stream;
    return interface;
  }

  ImportedTensor imported(const cai::Interface& interface,
                          const CudaArrayImportOptions& options = {}) {
    Result<ImportedTensor> result = from_cuda_array(interface, Counted(&owners_), options);
    EXPECT_TRUE(result) << message(result);
    return result ? *std::move(result) : ImportedTensor{};
  }

  Error refused(const cai::Interface& interface, const CudaArrayImportOptions& options = {}) {
    const int before = owners_.count();
    Result<ImportedTensor> result = from_cuda_array(interface, Counted(&owners_), options);
    EXPECT_FALSE(result);
    EXPECT_EQ(owners_.count(), before + 1);
    return result ? Error(EIO, "") : std::move(result).error();
  }

  static constexpr std::array<std::int64_t, 1> kOne{1};
  static constexpr std::array<std::int64_t, 1> kEight{8};

  const Control control_{Api::kRuntime};
  FletchingStandinCounts before_{};
  FletchingStandinCounts during_{};
  bool is_open_ = false;
  void* producer_ = nullptr;
  void* consumer_ = nullptr;
  std::uintptr_t memory_ = 0;
  std::int32_t* gate_ = nullptr;
  std::int32_t* read_ = nullptr;
  int made_ = 0;  // arrays
  Releases releases_;
  Releases owners_;
};

using Rules = Exchange;

std::int64_t handle(void* stream) {
  return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(stream));
}

// --- DLPack
// ---------------------------------------------------------------------------------------

TEST_F(Rules, dlpack_stream_producer_synchronizes) {
  write_behind_gate();
  DeviceArray array = make_with_event();
  const Schema schema = make_schema({.format = "i"}).value();
  EXPECT_EQ(to_dlpack(*schema.get(), array).error().code(), EINVAL);
  EXPECT_EQ(read_on(consumer_), kOld) << "the negative control";
  const ConsumerStream stream = read_dlpack_stream(ARROW_DEVICE_CUDA, handle(consumer_)).value();
  const Result<DlpackTensor> tensor = to_dlpack(*schema.get(), array, stream);
  ASSERT_TRUE(tensor) << message(tensor);  // the gate is shut
  EXPECT_EQ((*tensor)->dl_tensor.data, data());
  Api::read(read_, memory_, consumer_);
  EXPECT_FALSE(Api::is_idle(consumer_));
  open_gate();
  Api::synchronize(consumer_);
  EXPECT_EQ(*read_, kNew);
}

TEST_F(Exchange, DlpackLetsTheHostWaitForMemoryThatItReads) {
  open_gate();
  write_behind_gate();
  DeviceArray array = make({.length = 1}, nullptr, ARROW_DEVICE_CUDA_MANAGED);
  ASSERT_TRUE(export_with_event(array, producer_));
  const Schema schema = make_schema({.format = "i"}).value();
  const ConsumerStream stream = read_dlpack_stream(ARROW_DEVICE_CUDA_MANAGED, {}).value();
  const Result<DlpackTensor> tensor = to_dlpack(*schema.get(), array, stream);
  ASSERT_TRUE(tensor) << message(tensor);
  EXPECT_TRUE(Api::is_idle(producer_));
}

TEST_F(Exchange, DlpackTensorsComeWithAnEvent) {
  write_behind_gate();
  DeviceArray array = make();
  const Schema schema = make_schema({.format = "i"}).value();
  Result<DlpackTensor> tensor = to_dlpack(*schema.get(), array);
  ASSERT_TRUE(tensor);
  const ConsumerStream stream{Ordering::kStream, reinterpret_cast<std::uintptr_t>(producer_)};
  Result<ImportedTensor> imported = from_dlpack(*std::move(tensor), stream);
  ASSERT_TRUE(imported) << message(imported);
  EXPECT_FALSE(SyncEvent(imported->array).ready().value());
  open_gate();
  EXPECT_TRUE(SyncEvent(imported->array).synchronize());
  imported->array.release();
  EXPECT_EQ(releases_.count(), 1);
}

// --- The event of an array that we make
// -----------------------------------------------------------------

// It is recorded behind the work, not before it.
TEST_F(Rules, sync_event_data_ready_when_triggered) {
  write_behind_gate();
  const DeviceArray array = make_with_event();
  ASSERT_NE(array->sync_event, nullptr);
  EXPECT_FALSE(SyncEvent(array).ready().value());
  EXPECT_EQ(read_on(consumer_), kOld);
  open_gate();
  ASSERT_TRUE(SyncEvent(array).synchronize());
  EXPECT_EQ(read_on(consumer_), kNew);
}

// Of a tensor whose producer has work under way, an array has an event; without one when the host
// has waited.
TEST_F(Rules, sync_event_null_means_ready) {
  write_behind_gate();
  const Schema schema = make_schema({.format = "i"}).value();
  const auto imported_behind = [&](ConsumerStream stream) {
    DeviceArray array = make();
    Result<DlpackTensor> tensor = to_dlpack(*schema.get(), array);
    return from_dlpack(*std::move(tensor), stream).value();
  };
  ImportedTensor pending =
      imported_behind({Ordering::kStream, reinterpret_cast<std::uintptr_t>(producer_)});
  ASSERT_NE(pending.array->sync_event, nullptr);
  EXPECT_FALSE(SyncEvent(pending.array).ready().value());
  open_gate();
  ASSERT_TRUE(SyncEvent(pending.array).synchronize());
  const ImportedTensor ready = imported_behind({Ordering::kHost, 0});
  EXPECT_EQ(ready.array->sync_event, nullptr);
  EXPECT_EQ(read_on(consumer_), kNew);
}

// --- CUDA Array Interface, export
// -----------------------------------------------------------------

TEST_F(Exchange, DescribesWhatIsThere) {
  const CudaArray array = described(make());
  const cai::Interface& says = array.interface();
  EXPECT_EQ(says.pointer, memory_);
  EXPECT_EQ(says.typestr, "<i4");
  EXPECT_EQ(says.shape.size(), 1U);
  EXPECT_EQ(says.shape[0], 1);
  EXPECT_FALSE(says.strides);
  EXPECT_TRUE(says.read_only);
  EXPECT_EQ(says.mask, nullptr);
  EXPECT_EQ(says.version, 3);
  EXPECT_TRUE(cai::check(says).empty());
}

TEST_F(Exchange, DescribesTypes) {
  constexpr std::array<std::pair<const char*, const char*>, 9> rows{{{"c", "|i1"},
                                                                     {"C", "|u1"},
                                                                     {"S", "<u2"},
                                                                     {"l", "<i8"},
                                                                     {"e", "<f2"},
                                                                     {"g", "<f8"},
                                                                     {"tss:", "<M8[s]"},
                                                                     {"tsu:", "<M8[us]"},
                                                                     {"tDn", "<m8[ns]"}}};
  for (const auto& [format, typestr] : rows) {
    EXPECT_EQ(described(make(), {}, {}, format).interface().typestr, typestr);
    cai::Interface back = says();
    back.typestr = typestr;
    EXPECT_STREQ(imported(back).schema->format, format);
  }
  const Schema zoned = make_schema({.format = "tsu:UTC"}).value();
  DeviceArray array = make();
  EXPECT_EQ(to_cuda_array(*zoned.get(), array).error().code(), ENOTSUP);
  EXPECT_FALSE(array.is_released());
  EXPECT_EQ(described(std::move(array), {}, {.as_storage = true}, "tsu:UTC").interface().typestr,
            "<i8");
}

TEST_F(Exchange, DescribesNoOtherDevice) {
  const Schema schema = make_schema({.format = "i"}).value();
  for (const ArrowDeviceType device : {ARROW_DEVICE_CPU, ARROW_DEVICE_ROCM, 21}) {
    DeviceArray array = make({.length = 1}, nullptr, device);
    EXPECT_EQ(to_cuda_array(*schema.get(), array).error().code(), ENOTSUP) << device;
  }
}

TEST_F(Rules, cai_zero_size_pointer) {
  EXPECT_EQ(described(make({.length = 0})).interface().pointer, 0U);
}

TEST_F(Rules, cai_stream_none_without_work) {
  EXPECT_FALSE(described(make()).interface().stream);
  EXPECT_TRUE(described(make_with_event()).interface().stream);
}

TEST_F(Rules, cai_stream_not_zero) {
  const CudaArray array = described(make_with_event(), static_cast<void*>(nullptr));
  EXPECT_EQ(array.interface().stream, cai::kStreamLegacyDefault);
}

TEST_F(Rules, cai_stream_values) {
  for (void* stream : {legacy_stream(), per_thread_stream(), consumer_}) {
    EXPECT_EQ(described(make_with_event(), stream).interface().stream, handle(stream));
  }
}

TEST_F(Rules, cai_stream_covers_all_work) {
  write_behind_gate();
  const CudaArray array = described(make_with_event());
  EXPECT_EQ(read_on(consumer_), kOld) << "the negative control";
  void* named = stream_named(array.interface());
  Api::read(read_, memory_, named);
  EXPECT_FALSE(Api::is_idle(named));
  open_gate();
  Api::synchronize(named);
  EXPECT_EQ(*read_, kNew);
}

TEST_F(Rules, cai_lifetime_stream_outlives_object) {
  {
    const CudaArray array = described(make());
    EXPECT_FALSE(array.interface().stream);
  }
  EXPECT_EQ(releases_.count(), 1) << "without a stream there is nothing to wait for";
  {
    const CudaArray array = described(make_with_event());
    // A consumer's work on the named stream, which outlasts the object.
    Api::wait_for_word(stream_named(array.interface()), gate_);
    Api::read(read_, memory_, stream_named(array.interface()));
  }
  EXPECT_EQ(releases_.count(), 1) << "the memory is still being read";
  open_gate();
  EXPECT_TRUE(releases_.wait_for(2));
}

TEST_F(Exchange, JoinsTheStreamsOfAProducer) {
  void* second = Api::make_stream();
  write_behind_gate();
  const std::array<void*, 3> streams{producer_, second, consumer_};
  const Status joined = join_cuda_streams(consumer_, streams, 0);
  ASSERT_TRUE(joined) << message(joined);
  Api::read(read_, memory_, consumer_);
  EXPECT_FALSE(Api::is_idle(consumer_));
  open_gate();
  Api::synchronize(consumer_);
  EXPECT_EQ(*read_, kNew);
  Api::destroy_stream(second);
}

TEST_F(Rules, cai_mask) {
  const auto* bitmap = reinterpret_cast<const void*>(memory_);
  const CudaArray array =
      described(make({.length = 1, .null_count = -1, .offset = 8}, bitmap), {}, {.mask = true});
  const cai::Interface* mask = array.interface().mask;
  ASSERT_NE(mask, nullptr);
  EXPECT_EQ(mask->typestr, "<t1");
  EXPECT_EQ(mask->pointer, memory_ + 1);
  EXPECT_EQ(mask->shape.size(), 1U);
  EXPECT_TRUE(cai::check(array.interface()).empty());
  EXPECT_EQ(described(make({.length = 1}, bitmap), {}, {.mask = true}).interface().mask, nullptr);
}

TEST_F(Exchange, RefusesNullsAndMasksWithinAByte) {
  const Schema schema = make_schema({.format = "i"}).value();
  const auto* bitmap = reinterpret_cast<const void*>(memory_);
  DeviceArray nulls = make({.length = 1, .null_count = -1}, bitmap);
  expect_mentions(to_cuda_array(*schema.get(), nulls).error(), "nulls");
  DeviceArray within = make({.length = 1, .null_count = -1, .offset = 3}, bitmap);
  expect_mentions(to_cuda_array(*schema.get(), within, {}, {.mask = true}).error(), "bit 3");
  EXPECT_FALSE(within.is_released());
}

// --- CUDA Array Interface, import
// -----------------------------------------------------------------

TEST_F(Exchange, AsksTheDriverForTheDeviceAndTheKindOfMemory) {
  EXPECT_EQ(imported(says()).array->device_type, ARROW_DEVICE_CUDA);
  EXPECT_EQ(imported(says()).array->device_id, 0);
  cai::Interface pinned = says();
  pinned.pointer = reinterpret_cast<std::uintptr_t>(gate_);
  EXPECT_EQ(imported(pinned).array->device_type, ARROW_DEVICE_CUDA_HOST);
  cuda::CUdeviceptr memory = 0;
  ASSERT_EQ(Api::api().cu_mem_alloc_managed(&memory, 4, cuda::kCuMemAttachGlobal), 0);
  cai::Interface managed = says();
  managed.pointer = memory;
  EXPECT_EQ(imported(managed).array->device_type, ARROW_DEVICE_CUDA_MANAGED);
  Api::free(memory);
}

TEST_F(Rules, cai_data_device_accessible) {
  std::int32_t local = 0;
  cai::Interface unknown = says();
  unknown.pointer = reinterpret_cast<std::uintptr_t>(&local);
  expect_mentions(refused(unknown), "cuPointerGetAttribute");
  cai::Interface null = says();
  null.pointer = 0;
  expect_mentions(refused(null), "cuda-array-interface.data-pointer");
}

TEST_F(Rules, cai_context_independent) {
  cai::Interface pinned = says();
  pinned.pointer = reinterpret_cast<std::uintptr_t>(gate_);
  cuda::CUdeviceptr there = 0;
  ASSERT_EQ(Api::api().cu_mem_host_get_device_pointer(&there, gate_, 0), 0);
  EXPECT_EQ(imported(pinned).array->array.buffers[1], reinterpret_cast<const void*>(there));
}

TEST_F(Rules, cai_lifetime_owner_kept) {
  ImportedTensor result = imported(says());
  EXPECT_EQ(owners_.count(), 0);
  result.array.release();
  EXPECT_EQ(owners_.count(), 1);
}

TEST_F(Rules, cai_strides_absent_is_contiguous) {
  constexpr std::array<std::int64_t, 2> shape{2, 3};
  constexpr std::array<std::int64_t, 2> rows{12, 4};
  constexpr std::array<std::int64_t, 2> columns{4, 8};
  constexpr std::array<std::int64_t, 2> odd{12, 3};
  cai::Interface interface = says();
  interface.shape = shape;
  EXPECT_STREQ(imported(interface).schema->format, "+w:3");
  interface.strides = rows;
  EXPECT_STREQ(imported(interface).schema->format, "+w:3");
  interface.strides = columns;
  EXPECT_EQ(refused(interface).code(), ENOTSUP);
  interface.strides = odd;
  EXPECT_EQ(refused(interface).code(), ENOTSUP);
}

TEST_F(Exchange, TakesNothingFromTheDriverWithoutElements) {
  constexpr std::array<std::int64_t, 1> none{0};
  cai::Interface interface = says();
  interface.shape = none;
  interface.pointer = 0;
  EXPECT_EQ(imported(interface).array->array.length, 0);
}

TEST_F(Exchange, RefusesWhatBreaksARule) {
  const Error zero = refused(says(0));
  EXPECT_EQ(zero.code(), EINVAL);
  expect_mentions(zero, "cuda-array-interface.stream-zero");
  for (const char* typestr : {">i4", "<i3", "<U4", "|V4", "<c8", "<M8[D]", "<M8[25s]", "|S4"}) {
    cai::Interface interface = says();
    interface.typestr = typestr;
    EXPECT_EQ(refused(interface).code(), ENOTSUP) << typestr;
  }
}

TEST_F(Rules, cai_sync_consumer_synchronizes) {
  write_behind_gate();
  ImportedTensor result = imported(says(handle(producer_)));
  ASSERT_NE(result.array->sync_event, nullptr);
  EXPECT_FALSE(SyncEvent(result.array).ready().value());
  EXPECT_EQ(read_on(consumer_), kOld) << "the negative control";
  ASSERT_TRUE(SyncEvent(result.array).wait_on(consumer_));
  Api::read(read_, memory_, consumer_);
  open_gate();
  Api::synchronize(consumer_);
  EXPECT_EQ(*read_, kNew);
}

// Both ways, and nobody but the library waits: the work of the first producer, an export, an import
// by somebody else, and that one's work.
TEST_F(Rules, cai_sync_no_data_races) {
  write_behind_gate();
  const CudaArray exported = described(make_with_event());
  ImportedTensor result = imported(exported.interface(), {.consumer_stream = consumer_});
  EXPECT_EQ(read_on(consumer_), kOld) << "the negative control";
  ASSERT_TRUE(SyncEvent(result.array).wait_on(consumer_));
  Api::read(read_, memory_, consumer_);
  EXPECT_FALSE(Api::is_idle(consumer_)) << "the gate is shut";
  open_gate();
  Api::synchronize(consumer_);
  EXPECT_EQ(*read_, kNew);
}

TEST_F(Rules, cai_stream_none_needs_no_sync) {
  EXPECT_EQ(imported(says()).array->sync_event, nullptr);
}

TEST_F(Rules, cai_sync_override_off_by_default) {
  EXPECT_TRUE(CudaArrayImportOptions{}.synchronize);
  EXPECT_EQ(imported(says(handle(producer_)), {.synchronize = false}).array->sync_event, nullptr);
}

TEST_F(Rules, cai_sync_blocks_producer_stream) {
  ImportedTensor result = imported(says(handle(producer_)), {.consumer_stream = consumer_});
  Api::wait_for_word(consumer_, gate_);
  Api::read(read_, memory_, consumer_);
  EXPECT_TRUE(SyncEvent(result.array).synchronize());
  result.array.release();
  EXPECT_EQ(owners_.count(), 1);
  Api::fill(memory_, 1, producer_);
  EXPECT_FALSE(Api::is_idle(producer_)) << "it does not wait for the consumer";
  open_gate();
  Api::synchronize(producer_);
  Api::synchronize(consumer_);
  EXPECT_EQ(*read_, kOld) << "the producer wrote while the consumer read";
}

TEST_F(Rules, cai_mask_as_boolean) {
  cai::Interface mask;
  mask.shape = kEight;
  mask.typestr = "<t1";
  mask.pointer = memory_;
  cai::Interface interface = says();
  interface.shape = kEight;
  interface.mask = &mask;
  const ImportedTensor bits = imported(interface);
  EXPECT_EQ(bits.array->array.buffers[0], data());
  EXPECT_EQ(bits.array->array.null_count, -1);
  mask.typestr = "|b1";
  expect_mentions(refused(interface), "pack_mask");
  auto owner = std::make_shared<int>(7);
  CudaArrayImportOptions packing;
  packing.pack_mask = [&](const cai::Interface& bytes) -> Result<ValidityBitmap> {
    EXPECT_EQ(bytes.typestr, "|b1");
    return ValidityBitmap{data(), owner};
  };
  ImportedTensor packed = imported(interface, packing);
  EXPECT_EQ(packed.array->array.buffers[0], data());
  EXPECT_EQ(owner.use_count(), 2);
  packed.array.release();
  EXPECT_EQ(owner.use_count(), 1);
  packing.pack_mask = [](const cai::Interface& /*bytes*/) -> Result<ValidityBitmap> {
    return Error{ENODEV, "no kernel"};
  };
  EXPECT_EQ(refused(interface, packing).code(), ENODEV);
}

TEST_F(Exchange, JoinsTheStreamsOfArrayAndMask) {
  void* other = Api::make_stream();
  cai::Interface mask;
  mask.shape = kEight;
  mask.typestr = "<t1";
  mask.pointer = memory_;
  mask.stream = handle(producer_);
  cai::Interface interface = says(handle(other));
  interface.shape = kEight;
  interface.mask = &mask;
  write_behind_gate();
  ImportedTensor result = imported(interface);
  EXPECT_FALSE(SyncEvent(result.array).ready().value());
  open_gate();
  EXPECT_TRUE(SyncEvent(result.array).synchronize());
  result.array.release();
  Api::destroy_stream(other);
}

// --- Faults
// ---------------------------------------------------------------------------------------

TEST_F(Exchange, EveryCallFailsOnce) {
  if (!control_.is_there()) GTEST_SKIP() << "needs the stand-in";
  const Schema schema = make_schema({.format = "i"}).value();
  for (const char* function : {"cuInit", "cuStreamCreate", "cuStreamWaitEvent"}) {
    DeviceArray array = make_with_event();
    const std::string fault = std::string(function) + ":1:CUDA_ERROR_LAUNCH_FAILED";
    ASSERT_TRUE(control_.set_fault(fault.c_str()));
    const Result<CudaArray> result = to_cuda_array(*schema.get(), array);
    control_.reset_faults();
    ASSERT_FALSE(result) << function;
    expect_mentions(result.error(), function);
    expect_mentions(result.error(), "CUDA_ERROR_LAUNCH_FAILED");
    EXPECT_FALSE(array.is_released()) << function;
  }
  for (const char* function :
       {"cuInit", "cuPointerGetAttribute", "cuEventCreate", "cuEventRecord"}) {
    const std::string fault = std::string(function) + ":1:CUDA_ERROR_LAUNCH_FAILED";
    ASSERT_TRUE(control_.set_fault(fault.c_str()));
    const Error error = refused(says(handle(producer_)));
    control_.reset_faults();
    expect_mentions(error, function);
  }
}

}  // namespace
}  // namespace fletching::testing
