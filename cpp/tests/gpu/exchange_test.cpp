// SPDX-License-Identifier: Apache-2.0
//
// DLPack and CUDA Array Interface exports behind a gate: events become stream waits, and streams
// become events. Runs on the stand-in driver, or on a device if NVIDIA's library is loaded instead.
#include "exchange.hpp"
#include "../dlpack_data.hpp"
#include "graphs.hpp"

namespace fletching::testing {
namespace {

// --- DLPack

TEST_F(Rules, DlpackStreamProducerSynchronizes) {
  write_behind_gate();
  DeviceArray array = make_with_event();
  const Schema schema = make_schema({.format = "i"}).value();
  EXPECT_EQ(to_dlpack(*schema, array).error().code(), EINVAL);
  EXPECT_EQ(read_on(consumer_), kOld) << "the negative control";
  const ConsumerStream stream = read_dlpack_stream(ARROW_DEVICE_CUDA, handle(consumer_)).value();
  const Result<DlpackTensor> tensor = to_dlpack(*schema, array, stream);
  ASSERT_TRUE(tensor) << message(tensor);  // the gate is shut
  EXPECT_EQ((*tensor)->dl_tensor.data, data());
  Api::read(read_, memory_, consumer_);
  EXPECT_TRUE(is_blocked(consumer_));
  open_gate();
  Api::synchronize(consumer_);
  EXPECT_EQ(*read_, kNew);
}

TEST_F(Exchange, DlpackSynchronizesHostReadableMemory) {
  write_behind_gate();
  DeviceArray array = make({.length = 1}, nullptr, ARROW_DEVICE_CUDA_MANAGED);
  ASSERT_TRUE(export_with_event(array, on(producer_)));
  const Schema schema = make_schema({.format = "i"}).value();
  const ConsumerStream stream = read_dlpack_stream(ARROW_DEVICE_CUDA_MANAGED, {}).value();
  Result<DlpackTensor> tensor(std::in_place);
  EXPECT_FALSE(returns_before_the_gate_opens(Api::kSynchronize,
                                             [&] { tensor = to_dlpack(*schema, array, stream); }));
  ASSERT_TRUE(tensor) << message(tensor);
  EXPECT_TRUE(Api::is_idle(producer_));
}

// After a wait the host can read the data: validity bitmaps without a null count.
TEST_F(Exchange, DlpackCountsNullsAfterHostWait) {
  open_gate();
  const Schema schema = make_schema({.format = "i"}).value();
  const auto to_dlpack_with = [&](unsigned char bits, Ordering ordering, ArrowDeviceType type) {
    DeviceArray array = make({.length = 1, .null_count = -1}, &bits, type);
    EXPECT_TRUE(export_with_event(array, on(producer_)));
    const ConsumerStream stream{ordering, {ARROW_DEVICE_CUDA, consumer_}};
    Result<DlpackTensor> tensor = to_dlpack(*schema, array, stream);
    EXPECT_EQ(array.is_released(), tensor.ok());
    return tensor;
  };
  for (const ArrowDeviceType type : {ARROW_DEVICE_CUDA_MANAGED, ARROW_DEVICE_CUDA_HOST}) {
    const Result<DlpackTensor> valid = to_dlpack_with(1, Ordering::kHost, type);
    EXPECT_TRUE(valid) << message(valid);
    expect_mentions(to_dlpack_with(0, Ordering::kHost, type).error(), "has nulls");
    for (const Ordering ordering : {Ordering::kNone, Ordering::kStream}) {
      expect_mentions(to_dlpack_with(1, ordering, type).error(), "may have nulls");
    }
  }
  expect_mentions(to_dlpack_with(1, Ordering::kHost, ARROW_DEVICE_CUDA).error(), "may have nulls");
}

TEST_F(Exchange, DlpackTensorsHaveEvent) {
  write_behind_gate();
  DeviceArray array = make();
  const Schema schema = make_schema({.format = "i"}).value();
  Result<DlpackTensor> tensor = to_dlpack(*schema, array);
  ASSERT_TRUE(tensor);
  const ConsumerStream stream{Ordering::kStream, {ARROW_DEVICE_CUDA, producer_}};
  Result<ImportedTensor> imported = from_dlpack(*std::move(tensor), stream);
  ASSERT_TRUE(imported) << message(imported);
  settle();
  EXPECT_FALSE(SyncEvent(imported->array).ready().value());
  open_gate();
  EXPECT_TRUE(SyncEvent(imported->array).synchronize());
  imported->array.release();
  EXPECT_EQ(releases_.count(), 1);
}

// Pinned memory is gathered by the CPU when the producer's work is done.
TEST_F(Exchange, DlpackSynchronizesBeforeCopy) {
  write_behind_gate();
  Api::read(read_, memory_, producer_);
  const ConsumerStream stream{Ordering::kStream, {ARROW_DEVICE_CUDA, producer_}};
  const DlpackImportOptions copies{.strided = Strided::kCopy};
  const auto pinned = [&](std::int64_t stride) {
    auto tensor = std::make_unique<ForeignTensor>(kInt8, read_, std::vector<std::int64_t>{2},
                                                  std::vector<std::int64_t>{stride});
    (*tensor)->device = {kDLCUDAHost, 0};
    return tensor;
  };
  // Without a copy there is no wait.
  const auto compact = pinned(1);
  Result<ImportedTensor> shared = from_dlpack(compact->take(), stream, copies);
  ASSERT_TRUE(shared) << message(shared);
  settle();
  EXPECT_FALSE(SyncEvent(shared->array).ready().value());
  EXPECT_EQ(shared->array->device_type, ARROW_DEVICE_CUDA_HOST);

  const auto refused = pinned(2);
  if (control_.is_there()) {
    ASSERT_TRUE(control_.set_fault("cuEventSynchronize:1:999"));
    EXPECT_EQ(from_dlpack(refused->take(), stream, copies).error().code(), EIO);
    EXPECT_EQ(refused->deleted, 1);
  }
  using Graphs = testing::Graphs<CudaApi>;
  if (Graphs::are_there()) {
    Graphs::begin(consumer_);
    const auto captured = pinned(2);
    const ConsumerStream busy{Ordering::kStream, {ARROW_DEVICE_CUDA, consumer_}};
    const Error error = from_dlpack(captured->take(), busy, copies).error();
    EXPECT_EQ(error.code(), EBUSY);
    expect_mentions(error, "copy before the capture begins");
    EXPECT_EQ(captured->deleted, 1);
    Graphs::destroy(Graphs::end(consumer_));
  }
  const auto strided = pinned(2);
  Result<ImportedTensor> copied(std::in_place);
  EXPECT_FALSE(returns_before_the_gate_opens(
      Api::kSynchronize, [&] { copied = from_dlpack(strided->take(), stream, copies); }));
  ASSERT_TRUE(copied) << message(copied);
  EXPECT_EQ(strided->deleted, 1);
  EXPECT_EQ(copied->array->device_type, ARROW_DEVICE_CPU);
  EXPECT_EQ(copied->array->device_id, -1);
  EXPECT_EQ(copied->array->sync_event, nullptr);
  const auto* values = static_cast<const std::int8_t*>(copied->array->array.buffers[1]);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 1);
  shared->array.release();
}

// --- The event of an array made by the library

// It is recorded after the work, not before it.
TEST_F(Rules, SyncEventDataReadyWhenTriggered) {
  write_behind_gate();
  const DeviceArray array = make_with_event();
  ASSERT_NE(array->sync_event, nullptr);
  settle();
  EXPECT_FALSE(SyncEvent(array).ready().value());
  EXPECT_EQ(read_on(consumer_), kOld);
  open_gate();
  ASSERT_TRUE(SyncEvent(array).synchronize());
  EXPECT_EQ(read_on(consumer_), kNew);
}

// An array made from a tensor has an event if the tensor's producer has pending work, and none if
// the host has waited.
TEST_F(Rules, SyncEventNullMeansReady) {
  write_behind_gate();
  const Schema schema = make_schema({.format = "i"}).value();
  const auto imported_behind = [&](ConsumerStream stream) {
    DeviceArray array = make();
    Result<DlpackTensor> tensor = to_dlpack(*schema, array);
    return from_dlpack(*std::move(tensor), stream).value();
  };
  ImportedTensor pending = imported_behind({Ordering::kStream, {ARROW_DEVICE_CUDA, producer_}});
  ASSERT_NE(pending.array->sync_event, nullptr);
  settle();
  EXPECT_FALSE(SyncEvent(pending.array).ready().value());
  open_gate();
  ASSERT_TRUE(SyncEvent(pending.array).synchronize());
  const ImportedTensor ready = imported_behind({.ordering = Ordering::kHost});
  EXPECT_EQ(ready.array->sync_event, nullptr);
  EXPECT_EQ(read_on(consumer_), kNew);
}

// --- CUDA Array Interface, export

TEST_F(Exchange, ExportDescribesArray) {
  const CudaArray array = described(make());
  const cai::Interface& says = array.array_interface();
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

TEST_F(Exchange, ExportDescribesTypes) {
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
    EXPECT_EQ(described(make(), {}, {}, format).array_interface().typestr, typestr);
    cai::Interface back = says();
    back.typestr = typestr;
    EXPECT_STREQ(imported(back).schema->format, format);
  }
  const Schema zoned = make_schema({.format = "tsu:UTC"}).value();
  DeviceArray array = make();
  EXPECT_EQ(to_cuda_array(*zoned.get(), array).error().code(), ENOTSUP);
  EXPECT_FALSE(array.is_released());
  EXPECT_EQ(
      described(std::move(array), {}, {.as_storage = true}, "tsu:UTC").array_interface().typestr,
      "<i8");
}

// The meaning of a time in an extension type would be lost.
TEST_F(Exchange, ExportRejectsExtensionTimesWithoutAsStorage) {
  const Schema schema =
      make_schema({.format = "tsu:", .metadata = {{kExtensionNameKey, "example.tide"}}}).value();
  DeviceArray array = make();
  expect_mentions(to_cuda_array(*schema, array).error(), "example.tide");
  const Result<CudaArray> stored = to_cuda_array(*schema, array, {}, {.as_storage = true});
  ASSERT_TRUE(stored) << message(stored);
  EXPECT_EQ(stored->array_interface().typestr, "<M8[us]");
}

TEST_F(Exchange, ExportRejectsOtherDevices) {
  const Schema schema = make_schema({.format = "i"}).value();
  for (const ArrowDeviceType device : {ARROW_DEVICE_CPU, ARROW_DEVICE_ROCM, 9999}) {
    DeviceArray array = make({.length = 1}, nullptr, device);
    EXPECT_EQ(to_cuda_array(*schema, array).error().code(), ENOTSUP) << device;
  }
}

TEST_F(Rules, CaiZeroSizePointer) {
  EXPECT_EQ(described(make({.length = 0})).array_interface().pointer, 0U);
}

TEST_F(Rules, CaiStreamNoneWithoutWork) {
  EXPECT_FALSE(described(make()).array_interface().stream);
  EXPECT_TRUE(described(make_with_event()).array_interface().stream);
}

TEST_F(Rules, CaiStreamNotZero) {
  const CudaArray array = described(make_with_event(), static_cast<void*>(nullptr));
  EXPECT_EQ(array.array_interface().stream, cai::kStreamLegacyDefault);
}

TEST_F(Rules, CaiStreamValues) {
  for (void* stream : {legacy_handle(), per_thread_handle(), consumer_}) {
    EXPECT_EQ(described(make_with_event(), stream).array_interface().stream, handle(stream));
  }
}

TEST_F(Rules, CaiStreamCoversAllWork) {
  write_behind_gate();
  const CudaArray array = described(make_with_event());
  EXPECT_EQ(read_on(consumer_), kOld) << "the negative control";
  void* named = stream_named(array.array_interface());
  Api::read(read_, memory_, named);
  EXPECT_TRUE(is_blocked(named));
  open_gate();
  Api::synchronize(named);
  EXPECT_EQ(*read_, kNew);
}

TEST_F(Rules, CaiLifetimeStreamOutlivesObject) {
  {
    const CudaArray array = described(make());
    EXPECT_FALSE(array.array_interface().stream);
  }
  EXPECT_EQ(releases_.count(), 1) << "without a stream there is nothing to wait for";
  {
    const CudaArray array = described(make_with_event());
    // A consumer's work on the named stream, which outlives the object.
    Api::wait_for_word(stream_named(array.array_interface()), gate_);
    Api::read(read_, memory_, stream_named(array.array_interface()));
  }
  settle();
  // A release that need not wait overtakes it; then the reaper has queried both.
  ReleasedArray other;
  DeviceArray second = other.make(ARROW_DEVICE_CUDA, 0);
  ASSERT_TRUE(release_after(second, on(consumer_)));
  ASSERT_TRUE(other.parents.wait_for(1));
  EXPECT_EQ(releases_.count(), 1) << "the memory is still being read";
  open_gate();
  EXPECT_TRUE(releases_.wait_for(2));
}

TEST_F(Exchange, JoinsProducerStreams) {
  void* second = Api::make_stream();
  write_behind_gate();
  const std::array streams{on(producer_), on(second), on(consumer_)};
  const Status joined = join_cuda_streams(on(consumer_), streams, 0);
  ASSERT_TRUE(joined) << message(joined);
  Api::read(read_, memory_, consumer_);
  EXPECT_TRUE(is_blocked(consumer_));
  open_gate();
  Api::synchronize(consumer_);
  EXPECT_EQ(*read_, kNew);
  Api::destroy_stream(second);
}

TEST_F(Rules, CaiMask) {
  const auto* bitmap = reinterpret_cast<const void*>(memory_);
  const CudaArray array =
      described(make({.length = 1, .null_count = -1, .offset = 8}, bitmap), {}, {.mask = true});
  const cai::Interface* mask = array.array_interface().mask;
  ASSERT_NE(mask, nullptr);
  EXPECT_EQ(mask->typestr, "<t1");
  EXPECT_EQ(mask->pointer, memory_ + 1);
  EXPECT_EQ(mask->shape.size(), 1U);
  EXPECT_TRUE(mask->read_only);
  EXPECT_TRUE(cai::check(array.array_interface()).empty());
  EXPECT_EQ(described(make({.length = 1}, bitmap), {}, {.mask = true}).array_interface().mask,
            nullptr);
}

// A reader of only the mask must wait for the same work.
TEST_F(Exchange, MaskHasStreamOfArray) {
  DeviceArray array = make({.length = 1, .null_count = -1}, data());
  ASSERT_TRUE(export_with_event(array, on(producer_)));
  const CudaArray described_array = described(std::move(array), {}, {.mask = true});
  const cai::Interface& says = described_array.array_interface();
  ASSERT_NE(says.mask, nullptr);
  ASSERT_TRUE(says.stream);
  EXPECT_EQ(says.mask->stream, says.stream);
}

TEST_F(Exchange, ExportRejectsNullsAndUnalignedMasks) {
  const Schema schema = make_schema({.format = "i"}).value();
  const auto* bitmap = reinterpret_cast<const void*>(memory_);
  DeviceArray nulls = make({.length = 1, .null_count = -1}, bitmap);
  expect_mentions(to_cuda_array(*schema, nulls).error(), "nulls");
  DeviceArray within = make({.length = 1, .null_count = -1, .offset = 3}, bitmap);
  expect_mentions(to_cuda_array(*schema, within, {}, {.mask = true}).error(), "got 3");
  EXPECT_FALSE(within.is_released());
}

}  // namespace
}  // namespace fletching::testing
