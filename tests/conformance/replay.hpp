// SPDX-License-Identifier: Apache-2.0
//
// The replay of a trace of the async stream (tests/traces/README.md): the cursor over its steps,
// and the comparison of calls, notifications, results and states.
#ifndef FLETCHING_TESTS_CONFORMANCE_REPLAY_HPP
#define FLETCHING_TESTS_CONFORMANCE_REPLAY_HPP

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fletching/owner.hpp"
#include "run.hpp"

namespace fletching::conformance {

using Json = nlohmann::json;

// Made by embed_traces.cmake; they end with a 0.
extern const unsigned char kProducerTraces[];
extern const unsigned char kConsumerTraces[];

/// A schema or a batch, and what became of it.
struct Thing {
  std::string fate = "discarded";  // when it was released
  int released = 0;

  void is_now(const char* name) {
    if (released == 0) fate = name;
  }
  /// Anything else than one release shows in the comparison.
  [[nodiscard]] std::string end() const {
    return released == 1 ? fate : std::to_string(released) + " releases";
  }
};

/// A struct without children on the CPU, whose private_data is the Thing.
template <class Raw>
Raw raw_of(Thing& thing) {
  Raw raw{};
  auto& base = fletching::detail::base(raw);
  base.private_data = &thing;
  base.release = [](auto* self) {
    ++static_cast<Thing*>(self->private_data)->released;
    self->release = nullptr;
  };
  if constexpr (std::is_same_v<Raw, ArrowSchema>) {
    raw.format = "+s";
  } else {
    static const void* no_validity[] = {nullptr};
    raw.array.n_buffers = 1;
    raw.array.buffers = no_validity;
    raw.device_type = ARROW_DEVICE_CPU;
    raw.device_id = -1;
  }
  return raw;
}

/// The name of a call; "notify" of a notification.
std::string name_of(const Json& what);

class Replay {
 public:
  /// `states`: their names, in the order of docs/reference/async.md.
  Replay(Case& played, const Json& trace, std::span<const char* const> states)
      : played_(played), trace_(trace), steps_(trace.at("steps")), states_(states) {}
  virtual ~Replay() = default;
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

 protected:
  /// The number of the state of the side under test; negative when it does not say.
  virtual std::int32_t state() = 0;

  /// The first difference ends the trace: no further step is played.
  void fail(const std::string& text);
  [[nodiscard]] bool failed() const;

  const Json* next() { return !failed() && cursor_ < steps_.size() ? &steps_[cursor_] : nullptr; }

  /// Whether the step has calls and notifications left.
  [[nodiscard]] bool expects_more() const { return !expected_.empty(); }
  /// Whether one of them is of this name.
  [[nodiscard]] bool expects(const std::string& name) const;

  /// The side under test makes a call, or notifies the application.
  void happened(const Json& what);
  /// One step, from its event to its result.
  void perform(const Json& step, const std::function<int()>& work);
  void compare_state();
  void finish(const std::string& schema, const std::vector<std::string>& tasks,
              const std::vector<int>& codes);

  Case& played_;

 private:
  const Json& trace_;
  const Json& steps_;
  const std::span<const char* const> states_;
  std::deque<Json> expected_;
  std::size_t cursor_ = 0;
  int depth_ = 0;
  std::string state_ = "created";
  std::map<std::string, int> counts_;
  mutable std::mutex mutex_;
  bool failed_ = false;
};

/// Plays each trace as a case. `play` gets the case and the trace.
template <class Play>
void each_trace(Run& run, const unsigned char* bytes, bool is_supported, const Play& play) {
  const Json file = Json::parse(reinterpret_cast<const char*>(bytes));
  for (const Json& trace : file.at("traces")) {
    const auto name = trace.at("name").get<std::string>();
    if (!run.begin(name.c_str())) continue;
    Case played(run, name);
    if (is_supported) {
      play(played, trace);
    } else {
      played.not_supported();
    }
  }
}

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_REPLAY_HPP
