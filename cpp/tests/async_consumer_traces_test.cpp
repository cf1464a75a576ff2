// Every trace of consumer.json (tests/traces/README.md), against the consumer of the library.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "async_replay.hpp"
#include "fletching/async_consumer.hpp"

namespace fletching::testing {
namespace {

constexpr std::array<const char*, 10> kStates = {
    "created", "cancelled_early", "streaming", "cancelled", "ended",
    "broken",  "failed",          "refused",   "releasing", "released"};

/// Hands one value at a time to another thread.
template <class T>
class Channel {
 public:
  void put(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    came_.notify_one();
  }
  std::optional<T> get() {
    std::unique_lock lock(mutex_);
    if (!came_.wait_for(lock, kPatience, [this] { return !values_.empty(); })) return {};
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<T> values_;
};

/// A take of the application, on its own thread, held open inside extract_data.
class Extraction {
 public:
  Extraction(int task, const std::function<int()>& take)
      : task(task), thread_([this, take] {
          current_ = this;
          answers.put(take());
        }) {}
  ~Extraction() { thread_.join(); }
  Extraction(const Extraction&) = delete;
  Extraction& operator=(const Extraction&) = delete;

  static Extraction* current() { return current_; }

  /// What extract_data does: runs orders until one says what to return.
  int inside() {
    answers.put(0);
    while (std::optional<std::function<std::optional<int>()>> order = orders.get()) {
      if (const std::optional<int> result = (*order)()) return *result;
    }
    return EIO;
  }

  const int task;
  Channel<int> answers;
  Channel<std::function<std::optional<int>()>> orders;

 private:
  static inline thread_local Extraction* current_ = nullptr;
  std::thread thread_;
};

class ConsumerReplay;

struct PeerTask {
  ConsumerReplay* replay = nullptr;
  Thing thing;
  int arrays = 0;
  int released = 0;
  bool wrong = false;  // its array is on another device than the stream
};

/// Plays the producer and the application around a consumer.
class ConsumerReplay final : public Replay {
 public:
  ConsumerReplay(const Json& trace, Coverage& coverage) : Replay(trace, coverage) {
    producer_.device_type = ARROW_DEVICE_CPU;
    producer_.private_data = this;
    producer_.request = [](ArrowAsyncProducer* self, std::int64_t n) {
      from(self).reached({{"call", "request"}, {"n", n}}, "request");
    };
    producer_.cancel = [](ArrowAsyncProducer* self) {
      from(self).reached({{"call", "cancel"}}, "cancel");
    };
    consumer_ = std::make_unique<AsyncConsumer>(
        AsyncConsumer::create(std::make_shared<Notified>(*this)).value());
    handler_ = consumer_->handler();
    handler_->producer = &producer_;
  }

  void run() {
    while (const Json* step = next()) one(*step);
    while (!extractions_.empty()) {
      fail("a task is still being extracted");
      extractions_.back()->orders.put([] { return EIO; });
      extractions_.pop_back();
    }
    for (std::thread& thread : releases_) thread.join();
    consumer_.reset();
    std::vector<std::string> fates;
    for (const auto& task : tasks_) {
      fates.push_back(task->thing.fate("freed"));
      EXPECT_EQ(task->arrays, task->released) << "arrays that were given and released";
    }
    const std::string none = schema_refused_ ? "refused" : "none";
    compare_final(schema_.fates.empty() ? none : schema_.fate("discarded"), fates, codes_);
  }

 protected:
  std::string state() override { return kStates[static_cast<std::size_t>(consumer_->state())]; }

 private:
  // NOLINTBEGIN(bugprone-exception-escape): a replay that has no memory may end
  /// The application.
  class Notified final : public AsyncListener {
   public:
    explicit Notified(ConsumerReplay& replay) : replay_(replay) {}
    Status accept_schema(const ArrowSchema&) noexcept override { return replay_.answer(); }
    Status accept_task(std::string_view) noexcept override { return replay_.answer(); }
    void on_schema(Schema schema, AsyncStreamInfo) noexcept override {
      replay_.schema_.fates.emplace_back("taken");
      schema->release = nullptr;
      replay_.reached({{"notify", "schema"}}, "notify");
    }
    void on_task() noexcept override {
      replay_.reached({{"notify", "task"}, {"task", replay_.arriving_}}, "notify");
    }
    void on_end() noexcept override { replay_.reached({{"notify", "end"}}, "notify"); }
    void on_error(const Error& error, std::string_view) noexcept override {
      replay_.codes_.push_back(error.code());
      replay_.reached({{"notify", "error"}, {"code", error.code()}}, "notify");
    }
    void on_release_waits() noexcept override { replay_.release_waits_.put(true); }

   private:
    ConsumerReplay& replay_;
  };
  // NOLINTEND(bugprone-exception-escape)

  static ConsumerReplay& from(ArrowAsyncProducer* self) {
    return *static_cast<ConsumerReplay*>(self->private_data);
  }

  Status answer() const {
    if (refusal_ == 0) return {};
    return Error(refusal_, "the application does not take it");
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
    return wait(extraction);
  }

  int wait(Extraction& extraction) {
    const std::optional<int> answer = extraction.answers.get();
    if (!answer) hang("the extracting thread");
    return *answer;
  }

  int act(const Json& step) {
    const auto event = step.at("event").get<std::string>();
    const int errno_value = step.value("errno", 0);
    if (event == "on_schema" || event == "on_schema_refused") return give_schema(errno_value);
    if (event == "on_task" || event == "on_task_refused" || event == "overlap") {
      return give_task(step.at("task"), errno_value);
    }
    if (event == "on_end") return handler_->on_next_task(handler_, nullptr, nullptr);
    if (event == "take") return take(step.at("task"));
    if (event == "extract_invalid") return finish_extraction(step, EINVAL, 0);
    if (event == "extract_ok" || event == "extract_fails") {
      return finish_extraction(step, errno_value, errno_value);
    }
    if (event == "release" && !step.value("returns", true)) {
      release_that_waits();
    } else if (event == "release" || event == "release_inside") {
      handler_->release(handler_);
    } else if (event == "on_error" || event == "on_error_foreign_code") {
      handler_->on_error(handler_, errno_value, "the peer has failed", nullptr);
    } else if (event == "request") {
      (void)consumer_->request(step.at("n").get<std::int64_t>());
    } else if (event == "cancel") {
      consumer_->cancel();
    } else if (event == "drop") {
      if (!consumer_->drop()) fail("nothing was dropped");
    } else {
      fail("there is no such event");
    }
    return 0;
  }

  int give_schema(int refusal) {
    Thing other;
    auto raw = raw_of<ArrowSchema>(schema_.fates.empty() ? schema_ : other);
    refusal_ = refusal;
    const int result = handler_->on_schema(handler_, &raw);
    refusal_ = 0;
    if (result == 0 && raw.release != nullptr) fail("the schema was neither moved nor released");
    if (result != 0 && raw.release == nullptr) fail("the schema was taken and refused");
    schema_refused_ = schema_refused_ || (result != 0 && schema_.fates.empty());
    return result;
  }

  int give_task(int number, int refusal) {
    tasks_.push_back(std::make_unique<PeerTask>());
    PeerTask& peer = *tasks_.back();
    peer.replay = this;
    peer.thing.number = number;
    arriving_ = number;
    refusal_ = refusal;
    ArrowAsyncTask task{[](ArrowAsyncTask* self, ArrowDeviceArray* out) {
                          auto& one = *static_cast<PeerTask*>(self->private_data);
                          return one.replay->extract_data(one, out);
                        },
                        &peer};
    const int result = handler_->on_next_task(handler_, &task, nullptr);
    refusal_ = 0;
    task = {};  // valid during the call only
    if (result != 0) peer.thing.fates.emplace_back("refused");
    return result;
  }

  int take(int number) {
    extractions_.push_back(std::make_unique<Extraction>(number, [this] {
      const std::optional<Result<AsyncBatch>> batch = consumer_->take();
      return !batch || batch->ok() ? 0 : batch->error().code();
    }));
    return wait(*extractions_.back());
  }

  /// `code` is what take returns, `returned` what extract_data returns.
  int finish_extraction(const Json& step, int code, int returned) {
    const auto number = step.at("task").get<int>();
    const auto at = std::ranges::find_if(extractions_,
                                         [number](const auto& one) { return one->task == number; });
    const std::unique_ptr<Extraction> extraction = std::move(*at);
    extractions_.erase(at);
    PeerTask& task = *tasks_.at(static_cast<std::size_t>(number));
    task.thing.fates.emplace_back(code == 0 ? "extracted" : "failed");
    task.wrong = code != returned;
    extraction->orders.put([returned] { return returned; });
    if (wait(*extraction) != code) fail("take returned something else");
    if (step.contains("then_returns")) join_releases();
    return 0;
  }

  void release_that_waits() {
    releases_.emplace_back([this] {
      handler_->release(handler_);
      release_waits_.put(false);
    });
    const std::optional<bool> waits = release_waits_.get();
    if (!waits) hang("release");
    if (!*waits) fail("release does not wait");
  }

  void join_releases() {
    const std::optional<bool> returned = release_waits_.get();
    if (!returned) hang("release");
    for (std::thread& thread : releases_) thread.join();
    releases_.clear();
  }

  // The producer.

  int extract_data(PeerTask& peer, ArrowDeviceArray* out) {
    const int number = peer.thing.number;
    const Json call = {{"call", "extract_data"}, {"task", number}, {"out", out != nullptr}};
    Extraction* extraction = Extraction::current();
    int result = 0;
    if (extraction != nullptr && extraction->task == number) {
      happened(call);
      result = extraction->inside();
    } else {
      peer.thing.fates.emplace_back(out == nullptr ? "dropped" : "extracted");
      reached(call, "extract_data");
    }
    // Written also when the extraction fails: the consumer must not look at it then.
    if (out != nullptr) fill(peer, out, result == 0);
    return result;
  }

  static void fill(PeerTask& peer, ArrowDeviceArray* out, bool good) {
    peer.arrays += good ? 1 : 0;
    out->device_type = peer.wrong ? ARROW_DEVICE_CUDA : ARROW_DEVICE_CPU;
    out->array.private_data = &peer;
    out->array.release = [](ArrowArray* self) {
      ++static_cast<PeerTask*>(self->private_data)->released;
      self->release = nullptr;
    };
  }

  /// Plays the steps within this call, when it is the last of its name.
  void reached(const Json& what, const std::string& name) {
    happened(what);
    for (const Json& more : expected_) {
      if (name == "notify" ? more.contains("notify") : more.value("call", "") == name) return;
    }
    while (const Json* step = next()) {
      if (step->value("within", "") != name) break;
      one(*step);
    }
  }

  ArrowAsyncProducer producer_{};
  std::unique_ptr<AsyncConsumer> consumer_;
  ArrowAsyncDeviceStreamHandler* handler_ = nullptr;
  Thing schema_;
  bool schema_refused_ = false;
  int refusal_ = 0;
  int arriving_ = 0;
  std::vector<std::unique_ptr<PeerTask>> tasks_;
  std::vector<std::unique_ptr<Extraction>> extractions_;
  std::vector<std::thread> releases_;
  Channel<bool> release_waits_;
  std::vector<int> codes_;
};

TEST(AsyncConsumer, does_what_every_trace_says) {
  const Json traces = read_traces("consumer");
  Coverage coverage;
  for (const Json& trace : traces) ConsumerReplay(trace, coverage).run();
  EXPECT_EQ(traces.size(), 195);
  // The generator's tests see to it that the traces enter every cell that can be entered.
  EXPECT_EQ(coverage.library, coverage.traces);
  RecordProperty("cells", static_cast<int>(coverage.library.size()));
}

}  // namespace
}  // namespace fletching::testing
