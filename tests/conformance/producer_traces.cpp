// SPDX-License-Identifier: Apache-2.0
//
// Traces of the async producer: the suite plays its source, its executor and its consumer.
#include <array>
#include <cerrno>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "replay.hpp"

namespace fletching::conformance {
namespace {

constexpr std::array kStates = {"created",       "schema",   "in_schema",  "streaming",
                                "in_task",       "in_end",   "stopping",   "error_in_call",
                                "error_pending", "in_error", "ended",      "failed",
                                "cancelled",     "refused",  "in_release", "released"};

class ProducerReplay final : public Replay {
 public:
  ProducerReplay(Case& played, const Json& trace) : Replay(played, trace, kStates) {
    for (const Json& step : trace.at("steps")) {
      if (step.at("event") == "extract_fails")
        failures_[step.at("task").get<int>()] = step.at("errno");
    }
    producer_.size = sizeof producer_;
    handler_.on_schema = [](ArrowAsyncDeviceStreamHandler* self, ArrowSchema* schema) {
      return from(self).schema_came(schema);
    };
    handler_.on_next_task = [](ArrowAsyncDeviceStreamHandler* self, ArrowAsyncTask* task,
                               const char*) { return from(self).task_came(task); };
    handler_.on_error = [](ArrowAsyncDeviceStreamHandler* self, int code, const char* message,
                           const char*) { from(self).error_came(code, message); };
    handler_.release = [](ArrowAsyncDeviceStreamHandler* self) {
      from(self).called({{"call", "release"}});
      self->release = nullptr;
    };
    handler_.private_data = this;
  }

  [[nodiscard]] ArrowAsyncDeviceStreamHandler* handler() { return &handler_; }
  [[nodiscard]] FletchingSubjectProducer* producer() { return &producer_; }

  void run() {
    raw_ = handler_.producer;
    if (is_supported()) {
      while (const Json* step = next()) one(*step);
    }
    if (failed() || !is_supported()) end_early();
    producer_.release(producer_.self);
    if (!is_supported()) return played_.not_supported();
    std::vector<std::string> fates;
    fates.reserve(batches_.size());
    for (const TrackedStruct& batch : batches_) fates.push_back(batch.end());
    finish(schema_given_ ? schema_.end() : "none", fates, codes_);
  }

 protected:
  std::int32_t state() override {
    return producer_.state == nullptr ? -1 : producer_.state(producer_.self);
  }

 private:
  [[nodiscard]] bool is_supported() const {
    return failures_.empty() || producer_.failing_batch != nullptr;
  }

  static ProducerReplay& from(ArrowAsyncDeviceStreamHandler* self) {
    return *static_cast<ProducerReplay*>(self->private_data);
  }

  void one(const Json& step) {
    perform(step, [&] {
      if (!step.contains("beside")) return act(step);
      int result = 0;
      std::thread([&] { result = act(step); }).join();
      return result;
    });
  }

  int act(const Json& step) {
    const auto event = step.at("event").get<std::string>();
    if (event == "schema_ready") {
      schema_given_ = true;
      auto raw = raw_of<ArrowSchema>(schema_);
      producer_.schema(producer_.self, &raw);
    } else if (event == "batch_ready") {
      give_batch();
    } else if (event == "end_reached") {
      producer_.end(producer_.self);
    } else if (event == "failure") {
      producer_.fail(producer_.self, step.at("errno"));
    } else if (event == "request" || event == "request_invalid") {
      raw_->request(raw_, step.at("n").get<std::int64_t>());
    } else if (event == "cancel") {
      raw_->cancel(raw_);
    } else if (event == "step") {
      run_jobs();
    } else {
      return extract(step.at("task"), event);
    }
    return 0;
  }

  /// Runs jobs until one has called the handler.
  void run_jobs() const {
    const int before = calls_;
    while (calls_ == before && producer_.run(producer_.self) != 0) {
    }
  }

  void give_batch() {
    const int number = static_cast<int>(batches_.size());
    auto raw = raw_of<ArrowDeviceArray>(batches_.emplace_back());
    raw.array.length = number;
    if (const auto failure = failures_.find(number); failure != failures_.end()) {
      producer_.failing_batch(producer_.self, &raw, failure->second);
    } else {
      producer_.batch(producer_.self, &raw);
    }
  }

  int extract(std::size_t number, const std::string& event) {
    ArrowAsyncTask& task = tasks_.at(number);
    TrackedStruct& batch = batches_.at(number);
    const bool is_again = event == "extract_again";
    if (event == "extract_drop") {
      batch.is_now("dropped");
      return task.extract_data(&task, nullptr);
    }
    if (!is_again) batch.is_now(event == "extract" ? "extracted" : "failed");
    Held<ArrowDeviceArray> out;
    const int result = task.extract_data(&task, &out);
    if (is_released(out.value) == (event == "extract")) {
      fail(event == "extract" ? "expected an array, got none" : "expected no array, got one");
    } else if (event == "extract" && out.value.array.length != static_cast<std::int64_t>(number)) {
      fail("expected batch " + std::to_string(number) + ", got another one");
    }
    return result;
  }

  // The handler.

  int schema_came(ArrowSchema* schema) {
    const int result = called({{"call", "on_schema"}});
    if (result == 0) {
      schema_.is_now("taken");
      release_left(*schema);
    }
    return result;
  }

  int task_came(ArrowAsyncTask* task) {
    if (task == nullptr) return called({{"call", "on_next_task"}, {"task", nullptr}});
    tasks_.push_back(*task);
    const int result = called({{"call", "on_next_task"}, {"task", tasks_.size() - 1}});
    if (result != 0) tasks_.back() = {};
    return result;
  }

  void error_came(int code, const char* message) {
    if (message == nullptr || *message == 0) fail("expected a text of the error, got none");
    codes_.push_back(code);
    called({{"call", "on_error"}, {"code", code}});
  }

  /// Plays the steps that happen before this call returns.
  int called(const Json& call) {
    ++calls_;
    happened(call);
    compare_state();
    while (const Json* step = next()) {
      if (!step->at("event").get<std::string>().starts_with("returns")) {
        one(*step);
        continue;
      }
      if (step->at("call") != call.at("call")) fail("another call runs: " + call.dump());
      perform(*step, [] { return 0; });
      return step->value("errno", 0);
    }
    fail("the call never returns: " + call.dump());
    return EIO;
  }

  /// Lets the producer release the handler after a fault.
  void end_early() {
    if (handler_.release != nullptr) raw_->cancel(raw_);
    for (ArrowAsyncTask& task : tasks_) {
      if (task.extract_data != nullptr) task.extract_data(&task, nullptr);
    }
    for (int before = -1; before != calls_;) {
      before = calls_;
      run_jobs();
    }
  }

  ArrowAsyncDeviceStreamHandler handler_{};
  ArrowAsyncProducer* raw_ = nullptr;
  FletchingSubjectProducer producer_{};
  std::map<int, int> failures_;  // errno values of failing extractions, by batch
  TrackedStruct schema_;
  bool schema_given_ = false;
  std::deque<TrackedStruct> batches_;
  std::deque<ArrowAsyncTask> tasks_;
  std::vector<int> codes_;
  int calls_ = 0;
};

/// Traces with an error before the cancel. The layer cannot see the error and reports on_error.
bool has_early_error(std::string_view name) {
  return name == "cancel-after-error" || name == "cancel-after-error-while-a-call-runs";
}

void play(Case& played, const Json& trace, const FletchingSubject& subject, bool is_validated) {
  ProducerReplay replay(played, trace);
  ArrowAsyncDeviceStreamHandler* handler = replay.handler();
  if (is_validated) {
    const FletchingValidateOptions options = layer(FLETCHING_VALIDATE_PROTOCOL, "producer");
    FletchingValidateAsyncHandler(&handler, &options, nullptr);
  }
  played.expect_accepted(ask(subject, subject.producer, handler, replay.producer()));
  if (played.is_wrong()) return;
  replay.run();
}

}  // namespace

void play_producer_traces(Run& run) {
  each_trace(run, kProducerTraces, run.subject.producer != nullptr,
             [&](Case& played, const Json& trace) {
               play(played, trace, run.subject, false);
               if (played.is_wrong() || has_early_error(played.name())) return;
               play(played, trace, run.subject, true);
             });
}

}  // namespace fletching::conformance
