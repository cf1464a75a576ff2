// SPDX-License-Identifier: Apache-2.0
#include "replay.hpp"

#include <algorithm>
#include <utility>

namespace fletching::conformance {

std::string name_of(const Json& what) {
  return what.contains("notify") ? "notify" : what.at("call").get<std::string>();
}

void Replay::fail(const std::string& text) {
  const std::scoped_lock lock(mutex_);
  if (failed_) return;
  failed_ = true;
  const std::size_t at = cursor_ == 0 ? 0 : cursor_ - 1;
  played_.wrong("step " + std::to_string(at) + ", " + steps_[at].at("event").get<std::string>() +
                ": " + text);
}

bool Replay::failed() const {
  const std::scoped_lock lock(mutex_);
  return failed_;
}

bool Replay::expects(const std::string& name) const {
  return std::ranges::any_of(expected_, [&](const Json& one) { return name_of(one) == name; });
}

void Replay::happened(const Json& what) {
  if (expected_.empty() || expected_.front() != what) {
    return fail("expected " + (expected_.empty() ? "no call" : expected_.front().dump()) +
                ", got " + what.dump());
  }
  expected_.pop_front();
  const std::string name = name_of(what);
  ++counts_[name == "on_next_task" && what.at("task").is_null() ? "end" : name];
}

void Replay::perform(const Json& step, const std::function<int()>& work) {
  compare_state();
  state_ = step.at("state");
  ++cursor_;
  ++depth_;
  std::deque<Json> outer = std::exchange(expected_, {});
  for (const char* kind : {"calls", "notifications"}) {
    for (const Json& one : step.value(kind, Json::array())) expected_.push_back(one);
  }
  const int result = work();
  if (!expected_.empty()) fail("expected " + expected_.front().dump() + ", got no call");
  expected_ = std::move(outer);
  const int expected = step.value("result", result);
  if (result != expected) {
    fail("expected the result " + std::to_string(expected) + ", got " + std::to_string(result));
  }
  if (--depth_ == 0) compare_state();
}

void Replay::compare_state() {
  const auto at = static_cast<std::size_t>(state());
  if (failed() || state() < 0) return;
  const std::string got = at < states_.size() ? states_[at] : std::to_string(at);
  if (got != state_) fail("expected the state " + state_ + ", got " + got);
}

void Replay::finish(const std::string& schema, const std::vector<std::string>& tasks,
                    const std::vector<int>& codes) {
  const Json& expected = trace_.at("finally");
  Json got{{"state", "released"}, {"schema", schema}, {"tasks", tasks}, {"code", nullptr}};
  if (!codes.empty()) got["code"] = codes.size() == 1 ? Json(codes[0]) : Json(codes);
  for (const auto& [name, count] : expected.at("calls").items()) got["calls"][name] = counts_[name];
  if (got != expected) fail("at the end: expected " + expected.dump() + ", got " + got.dump());
}

}  // namespace fletching::conformance
