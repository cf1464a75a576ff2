// SPDX-License-Identifier: Apache-2.0
//
// Allocation failures while an array is exchanged by the CUDA Array Interface: in the export, the
// import, the join of streams, and the release. Runs on the stand-in driver, whose own allocations
// fail as well.
#include <span>

#include "../alloc_failure.hpp"
#include "exchange.hpp"

namespace fletching::testing {
namespace {

class ExchangeOutOfMemory : public Exchange {
 protected:
  void SetUp() override {
    Exchange::SetUp();
    if (IsSkipped()) return;
    if (!control_.is_there()) GTEST_SKIP() << "needs the stand-in";
    open_gate();
    // Run the one-time initialization of the stand-in and the library first.
    described(make_with_event());
    EXPECT_TRUE(releases_.wait_for(made_));
  }

  /// Calls `round(inject)` until none of the injected allocations fails, and returns their number.
  /// Each round must destroy its driver objects and release every array once. Memory is not
  /// counted, because the stand-in caches some; sanitizers detect leaks.
  template <class Round>
  std::int64_t fail_each(const std::string& what, Round round) {
    SCOPED_TRACE(what);
    for (std::int64_t nth = 0;; ++nth) {
      Injection inject(nth, FailOn::kThisThread);
      round(inject);
      EXPECT_TRUE(releases_.wait_for(made_)) << "an array was not released";
      EXPECT_EQ(releases_.count(), made_) << "an array was released twice";
      EXPECT_TRUE(control_.comes_to(during_)) << "something of the driver leaks";
      if (!inject.fired() || HasFailure()) return nth;
    }
  }

  /// Expects ENOMEM for a failed allocation, the driver's error for a failed allocation of the
  /// driver, otherwise `expected`. Failures to destroy an unneeded event may be ignored.
  template <class T>
  static void expect_code(const Result<T>& result, bool fired, int expected) {
    if (!fired || result.ok()) {
      EXPECT_EQ(code_of(result), expected) << message(result);
      return;
    }
    if (code_of(result) == EIO) {
      expect_mentions(result.error(), "CUDA_ERROR_OUT_OF_MEMORY");
    } else {
      EXPECT_EQ(code_of(result), ENOMEM) << message(result);
    }
  }

  struct Exported {
    std::string_view format = "i";
    std::optional<Stream> stream = std::nullopt;
    CudaArrayExportOptions options = {};
    int code = 0;
  };

  /// Exports an array from `make_array` and releases it, once for each allocation that can fail.
  template <class Make>
  void export_each(const char* what, Make make_array, const Exported& wanted) {
    const Schema schema = make_schema({.format = wanted.format}).value();
    const std::int64_t failed = fail_each(what, [&](Injection& inject) {
      DeviceArray array = make_array();
      const Result<CudaArray> result =
          inject([&] { return to_cuda_array(*schema, array, wanted.stream, wanted.options); });
      expect_code(result, inject.fired(), wanted.code);
      EXPECT_EQ(array.is_released(), result.ok()) << "on failure it is still the caller's";
    });
    EXPECT_GT(failed, 0) << what << ": nothing was allocated: the test is blind";
    if (wanted.code != 0) return;
    fail_each(std::string(what) + ", release", [&](Injection& inject) {
      DeviceArray array = make_array();
      std::optional<CudaArray> result =
          to_cuda_array(*schema, array, wanted.stream, wanted.options).value();
      inject([&] { result.reset(); });
    });
  }

  /// Imports a description and releases it.
  void import_each(const char* what, const cai::Interface& interface,
                   const CudaArrayImportOptions& options = {}, int code = 0) {
    const std::int64_t failed = fail_each(what, [&](Injection& inject) {
      const int before = owners_.count();
      {
        Counted owner(&owners_);
        const Result<ImportedTensor> result =
            inject([&] { return from_cuda_array(interface, std::move(owner), options); });
        expect_code(result, inject.fired(), code);
        EXPECT_EQ(owners_.count(), before + (result.ok() ? 0 : 1)) << "the owner, on failure";
      }
      EXPECT_EQ(owners_.count(), before + 1) << "the owner, at the release";
    });
    EXPECT_GT(failed, 0) << what << ": nothing was allocated: the test is blind";
    if (code != 0) return;
    fail_each(std::string(what) + ", release", [&](Injection& inject) {
      const int before = owners_.count();
      ImportedTensor result = imported(interface, options);
      inject([&] { result = ImportedTensor(); });
      EXPECT_EQ(owners_.count(), before + 1);
    });
  }

  /// A bit mask for eight elements.
  cai::Interface mask_of_bits() const {
    cai::Interface mask;
    mask.shape = kEight;
    mask.typestr = "<t1";
    mask.pointer = memory_;
    return mask;
  }
};

TEST_F(ExchangeOutOfMemory, Export) {
  const auto plain = [&] { return make(); };
  const auto pending = [&] { return make_with_event(); };
  export_each("without an event", plain, {});
  export_each("a stream of its own", pending, {});
  export_each("a given stream", pending, {.stream = on(consumer_)});
  export_each("the default stream", pending, {.stream = on(nullptr)});
  export_each("a time", plain, {.format = "tsn:"});
  const auto* bitmap = data();
  const auto masked = [&] { return make({.length = 1, .null_count = -1, .offset = 8}, bitmap); };
  export_each("a mask", masked, {.options = {.mask = true}});
}

TEST_F(ExchangeOutOfMemory, RejectedExport) {
  const auto* bitmap = data();
  export_each("nulls", [&] { return make({.length = 1, .null_count = -1}, bitmap); },
              {.code = ENOTSUP});
  export_each("a mask within a byte",
              [&] { return make({.length = 1, .null_count = -1, .offset = 3}, bitmap); },
              {.options = {.mask = true}, .code = ENOTSUP});
  export_each("text", [&] { return make(); }, {.format = "tiD", .code = ENOTSUP});
  export_each("another device", [&] { return make({.length = 1}, nullptr, ARROW_DEVICE_ROCM); },
              {.code = ENOTSUP});
}

TEST_F(ExchangeOutOfMemory, Import) {
  import_each("without a stream", says());
  import_each("a stream", says(handle(producer_)));
  import_each("streams of both sides", says(handle(producer_)), {.consumer_stream = on(consumer_)});
  import_each("the consumer's stream alone", says(), {.consumer_stream = on(consumer_)});
  cai::Interface matrix = says();
  constexpr std::array<std::int64_t, 2> shape{2, 3};
  matrix.shape = shape;
  import_each("two dimensions", matrix);
}

TEST_F(ExchangeOutOfMemory, ImportWithMask) {
  cai::Interface mask = mask_of_bits();
  cai::Interface interface = says(handle(consumer_));
  interface.shape = kEight;
  interface.mask = &mask;
  import_each("bits", interface);
  mask.stream = handle(producer_);
  import_each("bits on another stream", interface);
  mask.typestr = "|b1";
  CudaArrayImportOptions packing;
  packing.pack_mask = [&](const cai::Interface& /*bytes*/) -> Result<ValidityBitmap> {
    return detail::guarded([&]() -> Result<ValidityBitmap> {
      return ValidityBitmap{data(), std::make_shared<int>(0)};
    });
  };
  import_each("bytes", interface, packing);
}

TEST_F(ExchangeOutOfMemory, RejectedImport) {
  import_each("stream 0", says(0), {}, EINVAL);
  cai::Interface swapped = says();
  swapped.typestr = ">i4";
  import_each("the other byte order", swapped, {}, ENOTSUP);
  cai::Interface mask = mask_of_bits();
  mask.typestr = "|b1";
  cai::Interface masked = says();
  masked.shape = kEight;
  masked.mask = &mask;
  import_each("a mask of bytes", masked, {}, ENOTSUP);
  constexpr std::array<std::int64_t, 1> odd{3};
  cai::Interface strided = says();
  strided.shape = kEight;
  strided.strides = odd;
  import_each("strides", strided, {}, ENOTSUP);
}

TEST_F(ExchangeOutOfMemory, Join) {
  const std::array streams{on(producer_), on(nullptr)};
  const std::int64_t failed = fail_each("join_cuda_streams", [&](Injection& inject) {
    const Status joined = inject([&] { return join_cuda_streams(on(consumer_), streams, 0); });
    // The destruction of the event retries to make its context current.
    if (!joined.ok()) expect_code(joined, inject.fired(), 0);
    if (!inject.fired()) {
      EXPECT_TRUE(joined.ok()) << message(joined);
    }
  });
  EXPECT_GT(failed, 0) << "nothing was allocated: the test is blind";
}

// An error message needs memory too, after a driver call has failed. Runs on a thread without a
// context, where the library must make one current and restore the previous one.
TEST_F(ExchangeOutOfMemory, FailingDriver) {
  const Schema schema = make_schema({.format = "i"}).value();
  const auto round = [&](const char* function) {
    const std::string fault = std::string(function) + ":1:CUDA_ERROR_LAUNCH_FAILED";
    fail_each(fault + ", export", [&](Injection& inject) {
      DeviceArray array = make_with_event();
      ASSERT_TRUE(control_.set_fault(fault.c_str()));
      const Result<CudaArray> result = inject([&] { return to_cuda_array(*schema, array); });
      control_.reset_faults();
      EXPECT_EQ(array.is_released(), result.ok());
    });
    fail_each(fault + ", import", [&](Injection& inject) {
      const int before = owners_.count();
      {
        Counted owner(&owners_);
        const cai::Interface interface = says(handle(producer_));
        ASSERT_TRUE(control_.set_fault(fault.c_str()));
        const Result<ImportedTensor> result = inject([&] {
          return from_cuda_array(interface, std::move(owner), {.consumer_stream = on(consumer_)});
        });
        control_.reset_faults();
        EXPECT_EQ(owners_.count(), before + (result.ok() ? 0 : 1));
      }
      EXPECT_EQ(owners_.count(), before + 1);
    });
  };
  std::thread([&] {
    for (const char* function :
         {"cuStreamGetCtx", "cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent",
          "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease", "cuPointerGetAttribute",
          "cuStreamCreate", "cuStreamWaitEvent", "cuEventCreate", "cuEventRecord"}) {
      round(function);
    }
  }).join();
}

}  // namespace
}  // namespace fletching::testing
