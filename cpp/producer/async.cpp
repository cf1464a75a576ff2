#include "async.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>

#include "export.hpp"
#include "fletching/async_producer.hpp"
#include "message.hpp"
#include "registry.hpp"

namespace fletching::producer {
namespace {

// Counts the running sources.
class Running {
 public:
  void enter() {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --count_;
    changed_.notify_all();
  }
  void wait_for_none() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t count_ = 0;
};

// Never destroyed, like the thread below: streams may still run at process exit.
Running& the_running() {
  static auto& running = *new Running;
  return running;
}

[[noreturn]] void fail_with(const fletching::Error& error) { fail(error.code(), error.message()); }

Executor& the_thread() {
  static WorkerThread* const thread = [] {
    auto started = WorkerThread::start();
    if (!started) fail_with(started.error());
    return started->release();
  }();
  return *thread;
}

class Source : public AsyncSource {
 public:
  Source(std::shared_ptr<Filler> filler, const Case& what, int64_t batches, int64_t fail_at)
      : filler_(std::move(filler)), what_(what), batches_(batches), fail_at_(fail_at) {
    number_ = register_struct(Kind::kStream, nullptr);
    the_running().enter();
  }
  ~Source() override {
    producer_.reset();
    filler_.reset();
    unregister_struct(Kind::kStream, number_);
    the_running().leave();  // last: another thread may wait for it
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  void begin(AsyncProducer producer, Schema schema) {
    producer_.emplace(std::move(producer));
    // After schema() the other thread uses `next_`.
    const bool is_empty = is_at_the_end();
    // schema() and end() fail only if the consumer has cancelled.
    (void)producer_->schema(std::move(schema));
    if (is_empty) (void)producer_->end();
  }

  // One batch per call: it is delivered before the next one is requested, so a failure drops none.
  void on_demand(int64_t) noexcept override {
    FletchingMessage message;
    const int code = guarded(&message, [&] { next(); });
    if (code != 0) producer().fail(detail::plain_error(code, message.text));
  }

 private:
  void next() {
    if (is_at_the_end()) return;
    if (next_ == fail_at_) fail(EIO, failure_text(what_, next_));
    DeviceArray batch;
    export_array(filler_, what_.node, batch.out());
    ++next_;
    // ECANCELED: the consumer has cancelled.
    const Status pushed = producer().push(std::move(batch));
    if (!pushed && pushed.error().code() != ECANCELED) fail_with(pushed.error());
    if (is_at_the_end()) (void)producer().end();  // without waiting for further demand
  }

  // Set before the first demand.
  AsyncProducer& producer() {
    return *producer_;  // NOLINT(bugprone-unchecked-optional-access)
  }

  [[nodiscard]] bool is_at_the_end() const { return next_ == batches_ && next_ != fail_at_; }

  std::shared_ptr<Filler> filler_;
  const Case& what_;
  const int64_t batches_;
  const int64_t fail_at_;
  int64_t next_ = 0;
  void* number_;
  std::optional<AsyncProducer> producer_;
};

}  // namespace

void run_async(std::shared_ptr<Filler> filler, const Case& what, int64_t batches, int64_t fail_at,
               ArrowAsyncDeviceStreamHandler* handler) {
  Executor& thread = the_thread();
  const ArrowDeviceType device_type = filler->backend().device_type();
  Schema schema;
  export_schema(what.node, schema.out());
  const auto source = std::make_shared<Source>(std::move(filler), what, batches, fail_at);
  auto producer = AsyncProducer::start(handler, thread, {device_type, {}, source});
  if (!producer) fail_with(producer.error());
  source->begin(*std::move(producer), std::move(schema));
}

void await_async() noexcept { the_running().wait_for_none(); }

}  // namespace fletching::producer
