// SPDX-License-Identifier: Apache-2.0
//
// Traces of the async consumer: the suite plays its producer and its application.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "replay.hpp"

namespace fletching::conformance {
namespace {

constexpr std::array kStates = {"created", "cancelled_early", "streaming", "cancelled", "ended",
                                "broken",  "failed",          "refused",   "releasing", "released"};
constexpr int kReleasing = 8;

/// Passes one value at a time to another thread.
template <class T>
class Channel {
 public:
  void put(T value) {
    const std::scoped_lock lock(mutex_);
    values_.push_back(std::move(value));
    came_.notify_one();
  }
  T get() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [this] { return !values_.empty(); });
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<T> values_;
};

/// A `take` call of the application on its own thread, paused inside extract_data.
class Extraction {
 public:
  explicit Extraction(std::size_t task) : task(task) {}
  ~Extraction() { thread_.join(); }
  Extraction(const Extraction&) = delete;
  Extraction& operator=(const Extraction&) = delete;

  void begin(const std::function<int()>& take) {
    thread_ = std::thread([this, take] { answers.put(take()); });
  }

  /// Runs orders inside extract_data until one gives the value to return.
  int inside() {
    is_inside = true;
    answers.put(0);
    std::optional<int> result;
    while (!result) result = orders.get()();
    return *result;
  }

  const std::size_t task;
  bool is_inside = false;
  Channel<int> answers;
  Channel<std::function<std::optional<int>()>> orders;

 private:
  std::thread thread_;
};

class ConsumerReplay;

struct PeerTask {
  ConsumerReplay* replay = nullptr;
  std::size_t number = 0;
  TrackedStruct array;      // the array that the consumer gets
  int arrays = 0;           // number of arrays it got
  bool is_foreign = false;  // the array is on another device type than the stream
  std::string fate;

  /// Appends, so that a second fate differs from every expected one.
  void meets(const std::string& what) { fate += fate.empty() ? what : ", " + what; }
};

class ConsumerReplay final : public Replay {
 public:
  ConsumerReplay(Case& played, const Json& trace, const FletchingSubject& subject)
      : Replay(played, trace, kStates), trace_(trace) {
    producer_.device_type = ARROW_DEVICE_CPU;
    producer_.private_data = this;
    producer_.request = [](ArrowAsyncProducer* self, std::int64_t n) {
      from(self->private_data).reached({{"call", "request"}, {"n", n}});
    };
    producer_.cancel = [](ArrowAsyncProducer* self) {
      from(self->private_data).reached({{"call", "cancel"}});
    };
    consumer_.size = sizeof consumer_;
    played.expect_accepted(
        ask(subject, subject.consumer, &notify, static_cast<void*>(this), &consumer_));
  }

  void run() {
    handler_ = consumer_.handler;
    handler_->producer = &producer_;
    const bool is_supported = std::ranges::all_of(
        trace_.at("steps"), [this](const Json& step) { return can_play(step); });
    if (is_supported) {
      while (const Json* step = next()) one(*step);
    }
    for (; !extractions_.empty(); extractions_.pop_back()) {
      fail("a task is still being extracted");
      extractions_.back()->orders.put([] { return EIO; });
    }
    join_releases();
    if (!is_released_) handler_->release(handler_);
    consumer_.release(consumer_.self);
    if (!is_supported) return played_.not_supported();
    std::vector<std::string> fates;
    for (const auto& task : tasks_) {
      fates.push_back(task->fate);
      if (task->array.released != task->arrays) {
        fail("array " + std::to_string(task->number) + ": expected " +
             std::to_string(task->arrays) + " releases, got " +
             std::to_string(task->array.released));
      }
    }
    std::string schema = schemas_.empty() ? "none" : schemas_.front().end();
    finish(is_schema_refused_ ? "refused" : schema, fates, codes_);
  }

 protected:
  std::int32_t state() override {
    return consumer_.state == nullptr ? -1 : consumer_.state(consumer_.self);
  }

 private:
  static ConsumerReplay& from(void* context) { return *static_cast<ConsumerReplay*>(context); }

  [[nodiscard]] bool can_play(const Json& step) const {
    const auto event = step.at("event").get<std::string>();
    if (event == "drop") return consumer_.drop != nullptr;
    if (event.ends_with("_refused")) return consumer_.refuse_next != nullptr;
    return step.value("returns", true) || consumer_.state != nullptr;
  }

  // The application.

  static void notify(void* context, const char* what, int code) {
    ConsumerReplay& self = from(context);
    Json notification{{"notify", what}};
    if (std::string_view(what) == "schema" && !self.schemas_.empty()) {
      self.schemas_.front().is_now("taken");
    }
    if (std::string_view(what) == "task") notification["task"] = self.tasks_.size() - 1;
    if (std::string_view(what) == "error") {
      notification["code"] = code;
      self.codes_.push_back(code);
    }
    self.reached(notification);
  }

  void one(const Json& step) {
    const bool inside = step.value("within", "") == "extract_data" && !extractions_.empty();
    perform(step, [&] { return inside ? on_extracting_thread(step) : act(step); });
  }

  int on_extracting_thread(const Json& step) {
    Extraction& extraction = *extractions_.front();
    extraction.orders.put([&]() -> std::optional<int> {
      extraction.answers.put(act(step));
      return {};
    });
    return extraction.answers.get();
  }

  int act(const Json& step) {
    const auto event = step.at("event").get<std::string>();
    const int code = step.value("errno", 0);
    if (event.ends_with("_refused")) consumer_.refuse_next(consumer_.self, code);
    if (event.starts_with("on_schema")) return give_schema();
    if (event.starts_with("on_task") || event == "overlap") return give_task();
    if (event == "on_end") return handler_->on_next_task(handler_, nullptr, nullptr);
    if (event == "take") return take(step.at("task"));
    if (event == "extract_invalid") return finish_extraction(step, EINVAL, 0);
    if (event.starts_with("extract_")) return finish_extraction(step, code, code);
    if (event == "release" && !step.value("returns", true)) {
      release_that_waits();
    } else if (event.starts_with("release")) {
      is_released_ = true;
      handler_->release(handler_);
    } else if (event.starts_with("on_error")) {
      handler_->on_error(handler_, code, "the peer has failed", nullptr);
    } else if (event == "request") {
      consumer_.request(consumer_.self, step.at("n"));
    } else if (event == "cancel") {
      consumer_.cancel(consumer_.self);
    } else if (event == "drop") {
      if (consumer_.drop(consumer_.self) != 0) fail("expected a task to drop, got none");
    } else {
      fail("the event is unknown");
    }
    return 0;
  }

  int give_schema() {
    const bool is_first = schemas_.empty();
    auto raw = raw_of<ArrowSchema>(schemas_.emplace_back());
    const int result = handler_->on_schema(handler_, &raw);
    if (is_released(raw) != (result == 0)) {
      fail("expected a schema that is taken or refused, got " +
           std::string(result == 0 ? "neither" : "both"));
    }
    if (result != 0 && is_first) is_schema_refused_ = true;
    return result;
  }

  int give_task() {
    PeerTask& peer = *tasks_.emplace_back(std::make_unique<PeerTask>());
    peer.replay = this;
    peer.number = tasks_.size() - 1;
    ArrowAsyncTask task{[](ArrowAsyncTask* self, ArrowDeviceArray* out) {
                          auto& one = *static_cast<PeerTask*>(self->private_data);
                          return one.replay->extract_data(one, out);
                        },
                        &peer};
    const int result = handler_->on_next_task(handler_, &task, nullptr);
    task = {};  // valid during the call only
    if (result != 0) peer.meets("refused");
    return result;
  }

  int take(std::size_t number) {
    Extraction& extraction = *extractions_.emplace_back(std::make_unique<Extraction>(number));
    extraction.begin([this] { return consumer_.take(consumer_.self); });
    return extraction.answers.get();
  }

  /// `code` is the result of take, `returned` the result of extract_data.
  int finish_extraction(const Json& step, int code, int returned) {
    const auto number = step.at("task").get<std::size_t>();
    const auto at = std::ranges::find(extractions_, number, &Extraction::task);
    const std::unique_ptr<Extraction> extraction = std::move(*at);
    extractions_.erase(at);
    PeerTask& task = *tasks_.at(number);
    task.meets(code == 0 ? "extracted" : "failed");
    task.is_foreign = code != returned;
    if (has_returned_) fail("expected a release that waits, got one that returns");
    extraction->orders.put([returned] { return returned; });
    const int got = extraction->answers.get();
    if (got != code) {
      fail("take: expected " + std::to_string(code) + ", got " + std::to_string(got));
    }
    if (step.contains("then_returns")) join_releases();
    return 0;
  }

  /// Returns once the release waits; its calls, and the steps within them, are then over.
  void release_that_waits() {
    is_released_ = true;
    is_settled_ = !expects_more();
    releases_.emplace_back([this] {
      handler_->release(handler_);
      has_returned_ = true;
    });
    while (!is_settled_ || state() != kReleasing) {
      if (has_returned_ || failed()) return fail("expected a release that waits");
      std::this_thread::yield();
    }
  }

  void join_releases() {
    for (std::thread& thread : releases_) thread.join();
    releases_.clear();
    has_returned_ = false;
  }

  // The producer.

  int extract_data(PeerTask& peer, ArrowDeviceArray* out) {
    const Json call{{"call", "extract_data"}, {"task", peer.number}, {"out", out != nullptr}};
    const auto taken = std::ranges::find_if(
        extractions_, [&](const auto& one) { return one->task == peer.number && !one->is_inside; });
    int result = 0;
    if (taken != extractions_.end()) {
      happened(call);
      result = (*taken)->inside();
    } else {
      peer.meets(out == nullptr ? "dropped" : "extracted");
      reached(call);
    }
    if (out != nullptr) {  // even on a failure, where the consumer must not read it
      peer.arrays += result == 0 ? 1 : 0;
      *out = raw_of<ArrowDeviceArray>(peer.array);
      if (peer.is_foreign) out->device_type = ARROW_DEVICE_CUDA;
    }
    return result;
  }

  /// Plays the steps within this call if it is the last call of its name.
  void reached(const Json& what) {
    ++inside_;
    happened(what);
    const std::string name = name_of(what);
    while (!expects(name)) {
      const Json* step = next();
      if (step == nullptr || step->value("within", "") != name) break;
      one(*step);
    }
    --inside_;
    is_settled_ = inside_ == 0 && !expects_more();
  }

  const Json& trace_;
  ArrowAsyncProducer producer_{};
  FletchingSubjectConsumer consumer_{};
  ArrowAsyncDeviceStreamHandler* handler_ = nullptr;
  std::deque<TrackedStruct> schemas_;  // the first one is the stream's
  bool is_schema_refused_ = false;
  std::vector<std::unique_ptr<PeerTask>> tasks_;
  std::vector<int> codes_;
  std::vector<std::unique_ptr<Extraction>> extractions_;
  std::vector<std::thread> releases_;
  bool is_released_ = false;               // released or being released
  std::atomic<bool> has_returned_{false};  // the waiting release has returned
  std::atomic<bool> is_settled_{false};    // none of its calls is running or to come
  int inside_ = 0;
};

}  // namespace

void play_consumer_traces(Run& run) {
  each_trace(run, kConsumerTraces, run.subject.consumer != nullptr,
             [&](Case& played, const Json& trace) {
               ConsumerReplay replay(played, trace, run.subject);
               if (!played.is_wrong()) replay.run();
             });
}

}  // namespace fletching::conformance
