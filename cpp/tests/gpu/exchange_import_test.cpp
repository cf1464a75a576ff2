// SPDX-License-Identifier: Apache-2.0
//
// Imports of the CUDA Array Interface behind a gate, and faults. See also exchange_test.cpp.
#include "exchange.hpp"

namespace fletching::testing {
namespace {

// --- CUDA Array Interface, import

TEST_F(Exchange, ImportQueriesDeviceAndMemoryKind) {
  EXPECT_EQ(imported(says()).array->device_type, ARROW_DEVICE_CUDA);
  EXPECT_EQ(imported(says()).array->device_id, 0);
  cai::Interface pinned = says();
  pinned.pointer = reinterpret_cast<std::uintptr_t>(gate_);
  EXPECT_EQ(imported(pinned).array->device_type, ARROW_DEVICE_CUDA_HOST);
  cuda::CUdeviceptr memory = 0;
  ASSERT_EQ(Api::inside()->cu_mem_alloc_managed(&memory, 4, cuda::kCuMemAttachGlobal), 0);
  cai::Interface managed = says();
  managed.pointer = memory;
  EXPECT_EQ(imported(managed).array->device_type, ARROW_DEVICE_CUDA_MANAGED);
  Api::free(memory);
}

TEST_F(Rules, CaiDataDeviceAccessible) {
  std::int32_t local = 0;
  cai::Interface unknown = says();
  unknown.pointer = reinterpret_cast<std::uintptr_t>(&local);
  expect_mentions(refused(unknown), "cuPointerGetAttribute");
  cai::Interface null = says();
  null.pointer = 0;
  expect_mentions(refused(null), "cuda-array-interface.data-pointer");
}

TEST_F(Rules, CaiContextIndependent) {
  cai::Interface pinned = says();
  pinned.pointer = reinterpret_cast<std::uintptr_t>(gate_);
  cuda::CUdeviceptr there = 0;
  ASSERT_EQ(Api::inside()->cu_mem_host_get_device_pointer(&there, gate_, 0), 0);
  EXPECT_EQ(imported(pinned).array->array.buffers[1], reinterpret_cast<const void*>(there));
}

TEST_F(Rules, CaiLifetimeOwnerKept) {
  ImportedTensor result = imported(says());
  EXPECT_EQ(owners_.count(), 0);
  result.array.release();
  EXPECT_EQ(owners_.count(), 1);
}

TEST_F(Rules, CaiStridesAbsentIsContiguous) {
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

TEST_F(Exchange, ImportWithoutElementsSkipsDriver) {
  constexpr std::array<std::int64_t, 1> none{0};
  cai::Interface interface = says();
  interface.shape = none;
  interface.pointer = 0;
  EXPECT_EQ(imported(interface).array->array.length, 0);
}

TEST_F(Exchange, ImportRejectsBrokenRules) {
  const Error zero = refused(says(0));
  EXPECT_EQ(zero.code(), EINVAL);
  expect_mentions(zero, "cuda-array-interface.stream-zero");
  for (const char* typestr : {">i4", "<i3", "<U4", "|V4", "<c2", "<M8[D]", "<M8[25s]", "|S4"}) {
    cai::Interface interface = says();
    interface.typestr = typestr;
    EXPECT_EQ(refused(interface).code(), ENOTSUP) << typestr;
  }
}

TEST_F(Exchange, ImportKeepsComplexNumbers) {
  cai::Interface interface = says();
  interface.typestr = "<c8";
  const ImportedTensor result = imported(interface);
  EXPECT_STREQ(result.schema->format, "+w:2");
  EXPECT_STREQ(result.schema->children[0]->format, "f");
}

TEST_F(Rules, CaiSyncConsumerSynchronizes) {
  write_behind_gate();
  ImportedTensor result = imported(says(handle(producer_)));
  ASSERT_NE(result.array->sync_event, nullptr);
  settle();
  EXPECT_FALSE(SyncEvent(result.array).ready().value());
  EXPECT_EQ(read_on(consumer_), kOld) << "the negative control";
  ASSERT_TRUE(SyncEvent(result.array).wait_on(on(consumer_)));
  Api::read(read_, memory_, consumer_);
  EXPECT_TRUE(is_blocked(consumer_));
  open_gate();
  Api::synchronize(consumer_);
  EXPECT_EQ(*read_, kNew);
}

// Both directions, where only the library waits: work of the first producer, an export, an import
// by a peer, and work of the peer.
TEST_F(Rules, CaiSyncNoDataRaces) {
  write_behind_gate();
  const CudaArray exported = described(make_with_event());
  ImportedTensor result = imported(exported.array_interface(), {.consumer_stream = on(consumer_)});
  EXPECT_EQ(read_on(consumer_), kOld) << "the negative control";
  ASSERT_TRUE(SyncEvent(result.array).wait_on(on(consumer_)));
  Api::read(read_, memory_, consumer_);
  EXPECT_TRUE(is_blocked(consumer_)) << "the gate is shut";
  open_gate();
  Api::synchronize(consumer_);
  EXPECT_EQ(*read_, kNew);
}

TEST_F(Rules, CaiStreamNoneNeedsNoSync) { EXPECT_EQ(imported(says()).array->sync_event, nullptr); }

TEST_F(Rules, CaiSyncOverrideOffByDefault) {
  EXPECT_TRUE(CudaArrayImportOptions{}.synchronize);
  EXPECT_EQ(imported(says(handle(producer_)), {.synchronize = false}).array->sync_event, nullptr);
}

TEST_F(Rules, CaiSyncBlocksProducerStream) {
  ImportedTensor result = imported(says(handle(producer_)), {.consumer_stream = on(consumer_)});
  Api::wait_for_word(consumer_, gate_);
  Api::read(read_, memory_, consumer_);
  EXPECT_TRUE(SyncEvent(result.array).synchronize());
  result.array.release();
  EXPECT_EQ(owners_.count(), 1);
  Api::fill(memory_, 1, producer_);
  EXPECT_TRUE(is_blocked(producer_)) << "it does not wait for the consumer";
  open_gate();
  Api::synchronize(producer_);
  Api::synchronize(consumer_);
  EXPECT_EQ(*read_, kOld) << "the producer wrote while the consumer read";
}

TEST_F(Rules, CaiMaskAsBoolean) {
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

// All buffers of an array are on one device.
TEST_F(Exchange, ImportRejectsMaskOnOtherDevice) {
  cai::Interface mask;
  mask.shape = kEight;
  mask.typestr = "<t1";
  cai::Interface interface = says();
  interface.shape = kEight;
  interface.mask = &mask;
  cuda::CUdeviceptr managed = 0;
  ASSERT_EQ(Api::inside()->cu_mem_alloc_managed(&managed, 4, cuda::kCuMemAttachGlobal), 0);
  std::vector<std::uint64_t> elsewhere{reinterpret_cast<std::uintptr_t>(gate_), managed};
  if (devices_ > 1) {
    Api::open_device(1);
    cuda::CUdeviceptr there = 0;
    ASSERT_EQ(Api::api().cu_mem_alloc(&there, 4), 0);
    elsewhere.push_back(there);
  }
  for (const std::uint64_t pointer : elsewhere) {
    SCOPED_TRACE(pointer);
    mask.pointer = pointer;
    const Error error = refused(interface);
    EXPECT_EQ(error.code(), ENOTSUP);
    expect_mentions(error, "another device than the values");
    const void* bits = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(pointer));
    CudaArrayImportOptions packing;
    packing.pack_mask = [&](const cai::Interface& /*mask*/) -> Result<ValidityBitmap> {
      return ValidityBitmap{bits, nullptr};
    };
    expect_mentions(refused(interface, packing), "another device than the values");
    packing.pack_mask = [&](const cai::Interface& /*mask*/) -> Result<ValidityBitmap> {
      return ValidityBitmap{data(), nullptr};
    };
    EXPECT_EQ(imported(interface, packing).array->array.buffers[0], data()) << "copied there";
  }
  if (devices_ > 1) {
    Api::free(elsewhere.back());
    Api::close_device(1);
  }
  Api::free(managed);
}

// A mask without elements is ignored, wherever it is.
TEST_F(Exchange, ImportWithoutElementsIgnoresMask) {
  constexpr std::array<std::int64_t, 1> none{0};
  cai::Interface mask;
  mask.shape = none;
  mask.typestr = "<t1";
  cai::Interface interface = says();
  interface.shape = none;
  interface.pointer = 0;
  interface.mask = &mask;
  EXPECT_EQ(imported(interface).array->array.buffers[0], nullptr);
}

TEST_F(Exchange, MaskStreamWaitsForConsumer) {
  void* other = Api::make_stream();
  cai::Interface mask;
  mask.shape = kEight;
  mask.typestr = "<t1";
  mask.pointer = memory_;
  mask.stream = handle(producer_);
  cai::Interface interface = says(handle(other));
  interface.shape = kEight;
  interface.mask = &mask;
  ImportedTensor result = imported(interface, {.consumer_stream = on(consumer_)});
  EXPECT_TRUE(SyncEvent(result.array).synchronize());
  Api::wait_for_word(consumer_, gate_);
  result.array.release();
  EXPECT_TRUE(is_blocked(producer_)) << "the mask's stream does not wait for the consumer";
  EXPECT_TRUE(is_blocked(other)) << "the stream does not wait for the consumer";
  open_gate();
  Api::destroy_stream(other);
}

TEST_F(Exchange, JoinsArrayAndMaskStreams) {
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
  settle();
  EXPECT_FALSE(SyncEvent(result.array).ready().value());
  open_gate();
  EXPECT_TRUE(SyncEvent(result.array).synchronize());
  result.array.release();
  Api::destroy_stream(other);
}

// --- Faults

// A failed wait is retried: the consumer may read the memory until it succeeds.
TEST_F(Exchange, FailedWaitKeepsOwner) {
  if (!control_.is_there()) GTEST_SKIP() << "needs the stand-in";
  constexpr const char* kWait = "cuStreamSynchronize";
  ImportedTensor result = imported(says(), {.consumer_stream = on(consumer_)});
  Api::wait_for_word(consumer_, gate_);
  const std::int64_t calls = control_.calls(kWait);
  ASSERT_TRUE(control_.set_fault("cuStreamSynchronize:1:CUDA_ERROR_LAUNCH_FAILED"));
  std::thread other([&] { result.array.release(); });
  // Waits until the second wait has begun, which ends when the gate opens, or the owner is
  // released.
  while (control_.calls(kWait) < calls + 2 && owners_.count() == 0) std::this_thread::yield();
  EXPECT_EQ(owners_.count(), 0) << "the gate is shut";
  open_gate();
  other.join();
  EXPECT_EQ(owners_.count(), 1);
}

TEST_F(Exchange, SurvivesDriverFailures) {
  if (!control_.is_there()) GTEST_SKIP() << "needs the stand-in";
  const Schema schema = make_schema({.format = "i"}).value();
  for (const char* function : {"cuStreamCreate", "cuStreamWaitEvent"}) {
    DeviceArray array = make_with_event();
    const std::string fault = std::string(function) + ":1:CUDA_ERROR_LAUNCH_FAILED";
    ASSERT_TRUE(control_.set_fault(fault.c_str()));
    const Result<CudaArray> result = to_cuda_array(*schema, array);
    control_.reset_faults();
    ASSERT_FALSE(result) << function;
    expect_mentions(result.error(), function);
    expect_mentions(result.error(), "CUDA_ERROR_LAUNCH_FAILED");
    EXPECT_FALSE(array.is_released()) << function;
  }
  for (const char* function : {"cuPointerGetAttribute", "cuEventCreate", "cuEventRecord"}) {
    const std::string fault = std::string(function) + ":1:CUDA_ERROR_LAUNCH_FAILED";
    ASSERT_TRUE(control_.set_fault(fault.c_str()));
    const Error error = refused(says(handle(producer_)));
    control_.reset_faults();
    expect_mentions(error, function);
  }
}

}  // namespace
}  // namespace fletching::testing
