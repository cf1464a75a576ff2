// SPDX-License-Identifier: Apache-2.0
//
// Runs the vectors of tests/events on the core's C functions, with the stand-ins.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "../released_array.hpp"
#include "api.hpp"
#include "fletching/events.h"
#include "gated.hpp"
#include "graphs.hpp"

namespace fletching::testing {
namespace {

using nlohmann::json;

const json& file() {
  static const json parsed = json::parse(std::ifstream(FLETCHING_EVENT_VECTORS));
  return parsed;
}

int number_of(std::string_view error) {
  static const std::map<std::string_view, int> kNumbers{
      {"", 0}, {"EIO", EIO}, {"EBUSY", EBUSY}, {"EINVAL", EINVAL}, {"ENOTSUP", ENOTSUP}};
  return kNumbers.at(error);
}

int capture_option(std::string_view name) {
  if (name == "external") return FLETCHING_CAPTURE_EXTERNAL_EVENT;
  return name == "keep" ? FLETCHING_CAPTURE_KEEP : FLETCHING_CAPTURE_REFUSE;
}

template <class Api>
class Vectors : public Gated<Api> {
 protected:
  void SetUp() override {
    if (!this->control_.is_there()) GTEST_SKIP() << "needs the stand-in";
    Gated<Api>::SetUp();
    if (!this->is_open_) return;
    event_ = Api::make_event();
    free_ = Api::make_stream();
  }

  void TearDown() override {
    if (!this->is_open_) return;
    this->end_streams();
    Api::destroy_stream(free_);
    Api::destroy_event(event_);
    this->close();
    EXPECT_TRUE(this->control_.comes_to(this->before_)) << "something leaks";
  }

  void play(const json& vector, std::string_view current) {
    const FletchingStandinCounts alive = this->control_.alive();
    const std::string released = vector.value("released", "");
    const bool is_captured = vector.value("captured", false);
    void* const stream = prepare(vector);
    ArrowDeviceArray array = array_of(vector);
    ReleasedArray& made = *made_.back();
    const std::int64_t leaked = leaked_arrays();
    if (is_captured) Graphs<Api>::begin(stream);
    check_answer(vector, call(vector, current, array, stream), array, stream);
    EXPECT_EQ(array.array.release == nullptr, !released.empty());
    if (released == "later") {
      EXPECT_TRUE(made.parents.wait_for(1));
    } else {
      overtake();
      EXPECT_EQ(made.parents.count(), released == "at once" ? 1 : 0);
    }
    if (is_captured) Graphs<Api>::destroy(Graphs<Api>::end(stream));
    this->open_gate();
    if (released == "behind the gate" || released == "after the capture") {
      EXPECT_TRUE(made.parents.wait_for(1));
    }
    EXPECT_EQ(leaked_arrays() - leaked, vector.value("leaked", 0));
    if (array.array.release != nullptr) array.array.release(&array.array);
    Api::synchronize(this->producer_);
    EXPECT_EQ(made.parents.count(), released == "never" ? 0 : 1);
    EXPECT_TRUE(this->control_.comes_to(alive)) << "something leaks";
    await_releases();
  }

 private:
  struct Answer {
    int code = -1;
    int ready = -1;
    FletchingMessage message{};
  };

  /// Returns the vector's stream, behind the gate if requested. The producer's stream always is.
  void* prepare(const json& vector) {
    const std::string name = vector.value("stream", "own");
    const bool is_behind_gate = vector.value("behind_gate", false);
    shut_gate();
    if (name == "own") return is_behind_gate ? this->producer_ : this->consumer_;
    void* const stream = name == "null"     ? nullptr
                         : name == "legacy" ? legacy_handle()
                                            : per_thread_handle();
    if (is_behind_gate) queue_behind_gate(stream);
    return stream;
  }

  Answer call(const json& vector, std::string_view current, ArrowDeviceArray& array, void* stream) {
    Answer answer;
    FletchingStream on = FletchingStreamOfArray(stream);
    on.runtime = is_of_cuda() != vector.contains("other_runtime") ? FLETCHING_RUNTIME_CUDA
                                                                  : FLETCHING_RUNTIME_HIP;
    const int on_capture = capture_option(vector.value("on_capture", ""));
    const auto with_stream = [&](auto function) {
      return
          [=, &answer, &array] { answer.code = function(&array, on, on_capture, &answer.message); };
    };
    const std::map<std::string, std::function<void()>> operations{
        {"ready",
         [&] { answer.code = FletchingDeviceArrayReady(&array, &answer.ready, &answer.message); }},
        {"synchronize",
         [&] { answer.code = FletchingDeviceArraySynchronize(&array, &answer.message); }},
        {"wait_on", with_stream(&FletchingDeviceArrayWaitOn)},
        {"export_with_event", with_stream(&FletchingDeviceArrayExportWithEvent)},
        {"release_after", with_stream(&FletchingDeviceArrayReleaseAfter)}};
    set_faults(vector);
    run_with(current, operations.at(vector.at("operation")));
    this->control_.reset_faults();
    return answer;
  }

  void check_answer(const json& vector, const Answer& answer, const ArrowDeviceArray& array,
                    void* stream) {
    const std::string_view said = answer.message.text;
    EXPECT_EQ(answer.code, number_of(vector.value("error", ""))) << said;
    for (const json& text : vector.value("mentions", json::array())) {
      EXPECT_NE(said.find(named(text)), std::string_view::npos) << text << " is not in: " << said;
    }
    if (vector.contains("blocks")) {
      void* const asked = stream == legacy_handle() ? nullptr : stream;
      EXPECT_EQ(this->is_blocked(asked), vector.at("blocks").get<bool>());
    }
    if (!vector.contains("answer")) return;
    int ready = answer.ready;
    this->settle();
    if (ready < 0) {
      EXPECT_EQ(FletchingDeviceArrayReady(&array, &ready, nullptr), 0);
    }
    EXPECT_EQ(ready != 0, vector.at("answer").get<bool>());
  }

  static FletchingReleaseCounts release_counts() {
    FletchingReleaseCounts counts;
    FletchingPendingReleases(&counts, nullptr);
    return counts;
  }

  static std::int64_t leaked_arrays() { return release_counts().leaked; }

  /// The thread of a release calls the driver afterwards too, and must not meet the next vector's
  /// faults.
  static void await_releases() {
    while (release_counts().pending + release_counts().running > 0) std::this_thread::yield();
  }

  /// Records and completes the test's event, then shuts the gate: later work on the producer's
  /// stream waits.
  void shut_gate() {
    this->set_gate(0);
    Api::record(event_, this->producer_);
    Api::synchronize(this->producer_);
    Api::wait_for_word(this->producer_, this->gate_);
  }

  void queue_behind_gate(void* stream) {
    Api::record(event_, this->producer_);
    const FletchingEvent event{&event_, 0, nullptr, Api::kType};
    EXPECT_EQ(FletchingEventWaitOn(&event, FletchingStreamOfArray(stream), 0, nullptr), 0);
  }

  ArrowDeviceArray array_of(const json& vector) {
    const std::string memory = vector.value("memory", "device");
    const ArrowDeviceType type = memory == "host"     ? ARROW_DEVICE_CPU
                                 : memory == "pinned" ? Api::kHostType
                                                      : Api::kType;
    made_.push_back(std::make_unique<ReleasedArray>());
    ArrowDeviceArray array;
    made_.back()->make(type, memory == "host" ? -1 : 0).move_to(&array);
    if (vector.contains("event")) array.sync_event = &event_;
    if (vector.value("event", "") == "pending") Api::record(event_, this->producer_);
    return array;
  }

  /// Waits until the reaper has queried every array deferred earlier.
  void overtake() {
    this->settle();
    ReleasedArray free;
    ArrowDeviceArray array;
    free.make(Api::kType, 0).move_to(&array);
    EXPECT_EQ(FletchingDeviceArrayReleaseAfter(&array, FletchingStreamOfArray(free_), 0, nullptr),
              0);
    EXPECT_TRUE(free.parents.wait_for(1));
  }

  static void run_with(std::string_view current, const std::function<void()>& operation) {
    const auto unchanged = [&] {
      const auto before = Api::current();
      operation();
      EXPECT_EQ(Api::current(), before) << "something else is current";
    };
    if (current == "none") {
      std::thread(unchanged).join();
      return;
    }
    if (current == "other") Api::open_device(1);
    unchanged();
    if (current == "other") Api::close_device(1);
  }

  void set_faults(const json& vector) const {
    std::string all;
    for (const std::string fault : vector.value("faults", json::array())) {
      const auto first = fault.find(':');
      const auto last = fault.rfind(':');
      const std::string function = functions().at(fault.substr(0, first));
      const std::string error = file().at("errors").at(runtime()).at(fault.substr(last + 1));
      if (!all.empty()) all += ',';
      all.append(function).append(fault, first, last - first + 1).append(error);
    }
    if (all.empty()) return;
    ASSERT_TRUE(this->control_.set_fault(all.c_str())) << all;
  }

  static constexpr bool is_of_cuda() { return std::is_same_v<Api, CudaApi>; }
  static const char* runtime() { return is_of_cuda() ? "cuda" : "hip"; }
  static const json& functions() { return file().at("functions").at(runtime()); }
  static std::string named(const std::string& text) {
    return functions().contains(text) ? functions().at(text).get<std::string>() : text;
  }
  typename Api::Event event_{};
  void* free_ = nullptr;                              // an idle stream
  std::vector<std::unique_ptr<ReleasedArray>> made_;  // leaked arrays are never released
};

using Apis = ::testing::Types<CudaApi, HipApi>;
TYPED_TEST_SUITE(Vectors, Apis);

TYPED_TEST(Vectors, MatchExpectedResults) {
  static const json kEach{"own", "none", "other"};
  for (const json& vector : file().at("vectors")) {
    for (const std::string current : vector.value("current", kEach)) {
      SCOPED_TRACE(vector.at("name").get<std::string>() + "; current: " + current);
      this->play(vector, current);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace fletching::testing
