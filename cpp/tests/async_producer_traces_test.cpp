// Every trace of producer.json (tests/traces/README.md), against the producer of the library, also
// through the validation layer.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "async_replay.hpp"
#include "fletching/async_producer.hpp"
#include "fletching/validate.h"
#include "validate/findings.hpp"

namespace fletching::testing {
namespace {

constexpr std::array<const char*, 16> kStates = {
    "created",   "schema",        "in_schema",     "streaming", "in_task", "in_end",
    "stopping",  "error_in_call", "error_pending", "in_error",  "ended",   "failed",
    "cancelled", "refused",       "in_release",    "released"};

/// Keeps jobs until they are played.
class PlayedExecutor final : public Executor {
 public:
  void submit(Job& job) noexcept override { jobs_.push_back(&job); }

  /// Runs jobs, oldest first, until `done` or none is left.
  template <class Done>
  void step(const Done& done) {
    std::deque<Job*> jobs = std::exchange(jobs_, {});
    while (!jobs.empty()) {
      Job* job = jobs.front();
      jobs.pop_front();
      if (job->run()) jobs_.push_back(job);
      if (done()) break;
    }
    jobs_.insert(jobs_.begin(), jobs.begin(), jobs.end());
  }

 private:
  std::deque<Job*> jobs_;
};

/// Plays the source, the executor and the consumer around a producer.
class ProducerReplay final : public Replay {
 public:
  ProducerReplay(const Json& trace, Coverage& coverage, Findings* findings = nullptr)
      : Replay(trace, coverage) {
    for (const Json& step : trace.at("steps")) {
      if (step.at("event") == "extract_fails") made_.insert(step.at("task").get<int>());
    }
    handler_.on_schema = [](ArrowAsyncDeviceStreamHandler* self, ArrowSchema* schema) {
      const int result = from(self).called({{"call", "on_schema"}});
      if (result == 0) from(self).take(schema);
      return result;
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
    ArrowAsyncDeviceStreamHandler* handler = &handler_;
    if (findings != nullptr) {
      const FletchingValidateOptions options = findings->options(FLETCHING_VALIDATE_PROTOCOL);
      EXPECT_EQ(FletchingValidateAsyncHandler(&handler, &options, nullptr), 0);
    }
    Result<AsyncProducer> started = AsyncProducer::start(handler, executor_);
    producer_ = std::make_unique<AsyncProducer>(std::move(started).value());
    raw_ = handler_.producer;
  }

  void run() {
    while (const Json* step = next()) one(*step);
    std::vector<std::string> fates;
    fates.reserve(batches_.size());
    for (const auto& batch : batches_) {
      fates.push_back(batch->fate(dropped_.contains(batch->number) ? "dropped" : "discarded"));
    }
    compare_final(schema_given_ ? schema_.fate("discarded") : "none", fates, codes_);
  }

 protected:
  std::string state() override { return kStates[static_cast<std::size_t>(producer_->state())]; }

 private:
  static ProducerReplay& from(ArrowAsyncDeviceStreamHandler* self) {
    return *static_cast<ProducerReplay*>(self->private_data);
  }

  void one(const Json& step) {
    const auto work = [this, &step] { return act(step); };
    perform(step, step.contains("beside")
                      ? std::function<int()>([this, work] { return on_another_thread(work); })
                      : work);
  }

  int act(const Json& step) {
    const auto event = step.at("event").get<std::string>();
    if (event == "schema_ready") {
      schema_given_ = true;
      auto raw = raw_of<ArrowSchema>(schema_);
      (void)producer_->schema(Schema(&raw));
    } else if (event == "batch_ready") {
      give_batch();
    } else if (event == "end_reached") {
      (void)producer_->end();
    } else if (event == "failure") {
      producer_->fail(Error(step.at("errno"), "the source has failed"));
    } else if (event == "request" || event == "request_invalid") {
      raw_->request(raw_, step.at("n").get<std::int64_t>());
    } else if (event == "cancel") {
      raw_->cancel(raw_);
    } else if (event == "step") {
      const std::size_t before = expected_.size();
      executor_.step([this, before] { return failed() || expected_.size() != before; });
    } else {
      return extract(step, event);
    }
    return 0;
  }

  void give_batch() {
    batches_.push_back(std::make_unique<Thing>());
    Thing& batch = *batches_.back();
    batch.number = static_cast<int>(batches_.size()) - 1;
    if (!made_.contains(batch.number)) {
      auto raw = raw_of<ArrowDeviceArray>(batch);
      raw.array.length = batch.number;
      (void)producer_->push(DeviceArray(&raw));
      return;
    }
    auto raw = raw_of<ArrowDeviceArray>(batch);
    raw.array.length = batch.number;
    (void)producer_->push_made([this, array = std::make_shared<DeviceArray>(&raw),
                                &batch](ArrowDeviceArray* out) -> Status {
      array->move_to(out);
      if (errno_ == 0) return {};
      out->array.release = nullptr;
      batch.fates.emplace_back("failed");
      return Error(errno_, "the data cannot be had");
    });
  }

  int extract(const Json& step, const std::string& event) {
    const auto number = step.at("task").get<int>();
    errno_ = step.value("errno", 0);
    ArrowAsyncTask& task = tasks_[number];
    if (event == "extract_drop") {
      dropped_.insert(number);
      return task.extract_data(&task, nullptr);
    }
    DeviceArray array;
    const int result = task.extract_data(&task, array.out());
    if (event == "extract" && array.is_released())
      fail("extract_data: expected an array, got none");
    if (event != "extract" && !array.is_released())
      fail("extract_data: expected no array, got one");
    if (!array.is_released()) {
      if (array->array.length != number) fail("extract_data: returned another batch");
      batches_.at(static_cast<std::size_t>(number))->fates.emplace_back("extracted");
      array->array.release = nullptr;
    }
    return result;
  }

  // The handler.

  int task_came(ArrowAsyncTask* task) {
    if (task == nullptr) return called({{"call", "on_next_task"}, {"task", nullptr}});
    const int number = delivered_++;
    tasks_[number] = *task;
    return called({{"call", "on_next_task"}, {"task", number}});
  }

  void error_came(int code, const char* message) {
    if (message == nullptr || *message == 0) fail("on_error without a text");
    codes_.push_back(code);
    called({{"call", "on_error"}, {"code", code}});
  }

  void take(ArrowSchema* schema) {
    schema->release = nullptr;
    schema_.fates.emplace_back("taken");
  }

  /// Plays the steps that happen until this call returns.
  int called(const Json& call) {
    happened(call);
    compare_state();
    while (const Json* step = next()) {
      const auto event = step->at("event").get<std::string>();
      if (!event.starts_with("returns")) {
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

  ArrowAsyncDeviceStreamHandler handler_{};
  PlayedExecutor executor_;
  std::unique_ptr<AsyncProducer> producer_;
  ArrowAsyncProducer* raw_ = nullptr;
  std::set<int> made_;  // the batches that are made when they are extracted
  int errno_ = 0;
  bool schema_given_ = false;
  Thing schema_;
  std::vector<std::unique_ptr<Thing>> batches_;
  std::map<int, ArrowAsyncTask> tasks_;
  int delivered_ = 0;
  std::set<int> dropped_;
  std::vector<int> codes_;
};

TEST(AsyncProducer, does_what_every_trace_says) {
  const Json traces = read_traces("producer");
  Coverage coverage;
  for (const Json& trace : traces) ProducerReplay(trace, coverage).run();
  EXPECT_EQ(traces.size(), 246);
  // The generator's tests see to it that the traces enter every cell that can be entered.
  EXPECT_EQ(coverage.library, coverage.traces);
  RecordProperty("cells", static_cast<int>(coverage.library.size()));
}

/// The layer changes no trace, and no finding names the producer.
TEST(AsyncProducer, does_what_every_trace_says_when_validated) {
  // The error came before the cancel, which the layer cannot know.
  const std::set<std::string> late_errors{"cancel-after-error",
                                          "cancel-after-error-while-a-call-runs"};
  const Json traces = read_traces("producer");
  Coverage coverage;
  std::size_t count = 0;
  for (const Json& trace : traces) {
    Findings findings;
    ProducerReplay(trace, coverage, &findings).run();
    const auto name = trace.at("name").get<std::string>();
    count += findings.list.size();
    for (const std::string& finding : findings.list) {
      const bool is_late = finding == "async-cancel.no-on-error error producer on_error[0]" &&
                           late_errors.contains(name);
      EXPECT_TRUE(is_late || finding.find(" consumer ") != std::string::npos)
          << name << ": " << finding;
    }
  }
  EXPECT_GT(count, late_errors.size()) << "many consumers of the traces break rules";
  EXPECT_EQ(coverage.library, coverage.traces);
}

}  // namespace
}  // namespace fletching::testing
