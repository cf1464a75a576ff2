// What the replays of both sides share: a trace of `fletching traces`, the cursor over its steps,
// and the comparison of what the side under test does. tests/traces/README.md says what is played.
#ifndef FLETCHING_TESTS_ASYNC_REPLAY_HPP
#define FLETCHING_TESTS_ASYNC_REPLAY_HPP

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "fletching/abi.h"
#include "fletching/owner.hpp"

namespace fletching::testing {

using Json = nlohmann::json;

inline constexpr std::chrono::seconds kPatience{60};  // afterwards a thread counts as hung

inline Json read_traces(const std::string& side) {
  std::ifstream file(FLETCHING_TRACES "/" + side + ".json");
  return Json::parse(file).at("traces");
}

/// A schema or a batch, and what becomes of it.
struct Thing {
  std::vector<std::string> fates;
  int number = 0;

  /// What became of it, once; anything else shows in the comparison.
  [[nodiscard]] std::string fate(const std::string& freed) const {
    if (fates.size() != 1) return std::to_string(fates.size()) + " fates";
    return fates[0] == "freed" ? freed : fates[0];
  }
};

/// Structs whose private_data is the Thing.
template <class Raw>
Raw raw_of(Thing& thing) {
  Raw raw{};
  auto& base = detail::base(raw);
  base.private_data = &thing;
  base.release = [](auto* self) {
    static_cast<Thing*>(self->private_data)->fates.emplace_back("freed");
    self->release = nullptr;
  };
  if constexpr (std::is_same_v<Raw, ArrowDeviceArray>) raw.device_type = ARROW_DEVICE_CPU;
  return raw;
}

/// Which cells of the table were entered: by what the side under test says of its state, and by
/// what the traces say.
struct Coverage {
  using Cells = std::set<std::pair<std::string, std::string>>;
  Cells library;
  Cells traces;
};

class Replay {
 public:
  Replay(const Json& trace, Coverage& coverage)
      : trace_(trace), steps_(trace.at("steps")), coverage_(coverage) {}
  virtual ~Replay() = default;
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

 protected:
  virtual std::string state() = 0;

  /// The first difference ends the trace: no further step is played.
  void fail(const std::string& text) {
    if (failed_) return;
    failed_ = true;
    const std::size_t at = cursor_ == 0 ? 0 : cursor_ - 1;
    ADD_FAILURE() << trace_.at("name") << ": step " << at << ", " << steps_[at].at("event") << ": "
                  << text;
  }

  [[nodiscard]] bool failed() const { return failed_; }

  const Json* next() { return !failed_ && cursor_ < steps_.size() ? &steps_[cursor_] : nullptr; }

  /// The side under test makes a call, or notifies the application.
  void happened(const Json& what) {
    if (expected_.empty() || expected_.front() != what) {
      return fail(what.dump() + " instead of " +
                  (expected_.empty() ? "nothing" : expected_.front().dump()));
    }
    expected_.pop_front();
    const std::string name = what.value("call", "");
    const bool end = name == "on_next_task" && what.at("task").is_null();
    ++counts_[end ? "end" : name];
  }

  /// One step, from its event to its result.
  void perform(const Json& step, const std::function<int()>& work) {
    note_cell(step);
    ++cursor_;
    ++depth_;
    std::deque<Json> outer = std::exchange(expected_, {});
    for (const char* kind : {"calls", "notifications"}) {
      for (const Json& one : step.value(kind, Json::array())) expected_.push_back(one);
    }
    const int result = work();
    if (!expected_.empty()) fail("did not " + expected_.front().dump());
    expected_ = std::move(outer);
    if (step.contains("result") && step.at("result") != result) {
      fail("returned " + std::to_string(result) + " instead of " + step.at("result").dump());
    }
    --depth_;
    if (depth_ == 0) compare_state();
  }

  void compare_state() {
    if (!failed_ && state() != state_) fail("is " + state() + ", not " + state_);
  }

  void compare_final(const std::string& schema, const std::vector<std::string>& tasks,
                     const std::vector<int>& codes) {
    if (failed_) return;
    const Json& final = trace_.at("finally");
    for (const auto& [name, count] : final.at("calls").items()) {
      EXPECT_EQ(counts_[name], count) << trace_.at("name") << ": " << name;
    }
    EXPECT_EQ(Json(schema), final.at("schema")) << trace_.at("name");
    EXPECT_EQ(Json(tasks), final.at("tasks")) << trace_.at("name");
    const Json& code = final.at("code");
    EXPECT_EQ(Json(codes), code.is_null() ? Json::array() : Json::array({code}))
        << trace_.at("name");
  }

  /// Runs the work on another thread, and waits for its result.
  int on_another_thread(const std::function<int()>& work) {
    std::future<int> result = std::async(std::launch::async, work);
    if (result.wait_for(kPatience) != std::future_status::ready) hang("another thread");
    return result.get();
  }

  /// Threads of a hung trace cannot be ended, so the process is.
  [[noreturn]] void hang(const std::string& who) {
    fail(who + " hangs");
    std::abort();
  }

  std::deque<Json> expected_;

 private:
  void note_cell(const Json& step) {
    const auto event = step.at("event").get<std::string>();
    if (!event.starts_with("returns")) coverage_.library.emplace(state(), event);
    if (!event.starts_with("returns")) coverage_.traces.emplace(state_, event);
    state_ = step.at("state");
  }

  const Json& trace_;
  const Json& steps_;
  Coverage& coverage_;
  std::size_t cursor_ = 0;
  int depth_ = 0;
  bool failed_ = false;
  std::string state_ = "created";
  std::map<std::string, int> counts_;
};

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_ASYNC_REPLAY_HPP
