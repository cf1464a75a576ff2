// SPDX-License-Identifier: Apache-2.0
//
// Common fixture of the device tests: a producer's stream whose work waits behind a gate, a
// consumer's stream, and four bytes on the device.
#ifndef FLETCHING_TESTS_GPU_GATED_HPP
#define FLETCHING_TESTS_GPU_GATED_HPP

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "api.hpp"
#include "control.hpp"
#include "fletching/device_stream.hpp"

namespace fletching::testing {

// The four bytes before and after the producer's work.
inline constexpr std::int32_t kOld = 0;
inline constexpr std::int32_t kNew = 0x01010101;

/// The handles of CUDA's and HIP's default streams.
inline void* legacy_handle() { return Stream::legacy(ARROW_DEVICE_CUDA).handle(); }
inline void* per_thread_handle() { return Stream::per_thread(ARROW_DEVICE_CUDA).handle(); }

/// Writes a word that a stream waits on.
inline void store_word(void* word, std::int32_t value) {
  std::atomic_ref<std::int32_t>(*static_cast<std::int32_t*>(word))
      .store(value, std::memory_order_release);
}

/// The memory is on device 0, which is current for the test's thread unless CurrentDevice differs.
/// The gate is a word that the host writes and the producer's stream waits on.
template <class ApiOf>
class Gated : public ::testing::Test {
 protected:
  using Api = ApiOf;

  void SetUp() override {
    if (auto loaded = Api::load(); !loaded) GTEST_SKIP() << loaded.error().message();
    devices_ = Api::devices();
    if (devices_ == 0) GTEST_SKIP() << Api::kRuntime.title << ": there is no device";
    if (is_elsewhere() && devices_ < 2) GTEST_SKIP() << "needs two devices";
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
    gate_ = static_cast<std::int32_t*>(Api::allocate_word());
    read_ = static_cast<std::int32_t*>(Api::allocate_pinned());
    set_gate(0);
    Api::fill(memory_, 0, producer_);
    Api::synchronize(producer_);
    EXPECT_EQ(read_on(consumer_), kOld);  // performs the driver's initialization for the first copy
    if (current_device() != CurrentDevice::kOwn) {
      Api::keep_device(0);
      Api::leave();
    }
    if (is_elsewhere()) Api::open_device(1);
  }

  /// Opens the gate, waits for the work on both streams and destroys them. A test destroys its own
  /// objects between this and close.
  void end_streams() {
    open_gate();
    Api::destroy_stream(producer_);
    Api::destroy_stream(consumer_);
  }

  /// Destroys the fixture's objects. Afterwards the test compares the stand-in's live counts with
  /// before_.
  void close() {
    Api::free(memory_);
    Api::free_word(gate_);
    Api::free_pinned(read_);
    if (is_elsewhere()) Api::close_device(1);
    if (current_device() == CurrentDevice::kOwn) {
      Api::close_device(0);
    } else {
      Api::forget_device(0);
    }
    if (control_.is_there()) control_.reset_faults();
  }

  // Enqueues the producer's work, which writes the new data when the gate opens.
  void write_behind_gate() {
    Api::wait_for_word(producer_, gate_);
    Api::fill(memory_, 1, producer_);
  }
  void open_gate() { set_gate(1); }
  void set_gate(std::int32_t value) { store_word(gate_, value); }
  /// Waits until all work that does not wait for the gate is done. A real device cannot report
  /// this; there a test may read too early to detect a missing wait.
  void settle() const {
    if (control_.is_there()) control_.settle();
  }
  static bool is_elsewhere() { return current_device() == CurrentDevice::kOther; }
  static Stream on(void* handle) { return {Api::kType, handle}; }
  bool is_blocked(void* stream) const {
    settle();
    return !Api::is_idle(stream);
  }
  /// Calls `call`, which must wait on the host for work behind the gate, on a separate thread, and
  /// opens the gate once it is inside `function` of the driver. Returns whether it returned
  /// earlier. A real device does not report calls; there the gate may open too early to tell.
  template <class Call>
  bool returns_before_the_gate_opens(const char* function, Call call) {
    std::atomic<bool> has_returned = false;
    const std::int64_t calls = control_.is_there() ? control_.calls(function) : 0;
    std::thread caller([&] {
      call();
      has_returned = true;
    });
    while (control_.is_there() && control_.calls(function) == calls && !has_returned) {
      std::this_thread::yield();
    }
    const bool early = has_returned;
    open_gate();
    caller.join();
    return early;
  }
  std::int32_t read_on(void* stream) {
    Api::read(read_, memory_, stream);
    Api::synchronize(stream);
    return *read_;
  }

  const Control control_{Api::kRuntime};
  FletchingStandinCounts before_{};
  int devices_ = 0;
  bool is_open_ = false;
  void* producer_ = nullptr;
  void* consumer_ = nullptr;
  std::uintptr_t memory_ = 0;
  std::int32_t* gate_ = nullptr;
  std::int32_t* read_ = nullptr;
};

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_GPU_GATED_HPP
