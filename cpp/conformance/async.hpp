// SPDX-License-Identifier: Apache-2.0
//
// Callback tables of an async producer and an async consumer for the conformance traces.
#ifndef FLETCHING_CONFORMANCE_ASYNC_HPP
#define FLETCHING_CONFORMANCE_ASYNC_HPP

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "fletching/async_consumer.hpp"
#include "fletching/async_producer.hpp"
#include "fletching/conformance.h"

namespace fletching {

/// Holds the job of one producer until it is run.
class HeldJob final : public Executor {
 public:
  void submit(Job& job) noexcept override { job_ = &job; }
  bool run() noexcept {
    Job* const job = std::exchange(job_, nullptr);
    if (job != nullptr && job->run()) job_ = job;
    return job != nullptr;
  }

 private:
  Job* job_ = nullptr;
};

struct PlayedProducer {
  HeldJob job;
  std::optional<AsyncProducer> producer;

  static PlayedProducer& from(void* self) { return *static_cast<PlayedProducer*>(self); }
};

inline Status make_producer(ArrowAsyncDeviceStreamHandler* handler, FletchingSubjectProducer* out) {
  auto played = std::make_unique<PlayedProducer>();
  Result<AsyncProducer> producer = AsyncProducer::start(handler, played->job);
  if (!producer) return producer.error();
  played->producer = *std::move(producer);
  out->self = played.release();
  out->schema = [](void* self, ArrowSchema* schema) {
    (void)PlayedProducer::from(self).producer->schema(Schema(schema));
  };
  out->batch = [](void* self, ArrowDeviceArray* batch) {
    (void)PlayedProducer::from(self).producer->push(DeviceArray(batch));
  };
  out->failing_batch = [](void* self, ArrowDeviceArray* batch, int code) {
    (void)PlayedProducer::from(self).producer->push_made(
        [code, kept = std::make_shared<DeviceArray>(batch)](ArrowDeviceArray*) -> Status {
          kept->release();
          return Error(code, "the data is lost");
        });
  };
  out->end = [](void* self) { (void)PlayedProducer::from(self).producer->end(); };
  out->fail = [](void* self, int code) {
    PlayedProducer::from(self).producer->fail(Error(code, "the source has failed"));
  };
  out->run = [](void* self) { return PlayedProducer::from(self).job.run() ? 1 : 0; };
  out->state = [](void* self) {
    return static_cast<std::int32_t>(PlayedProducer::from(self).producer->state());
  };
  out->release = [](void* self) { delete &PlayedProducer::from(self); };
  return {};
}

/// Forwards the notifications.
class Notifier final : public AsyncListener {
 public:
  Notifier(FletchingSubjectNotify notify, void* context) : notify_(notify), context_(context) {}

  void refuse_next(int code) noexcept { refusal_ = code; }

  Status accept_schema(const ArrowSchema& /*schema*/) noexcept override { return answer(); }
  Status accept_task(std::string_view /*metadata*/) noexcept override { return answer(); }
  void on_schema(Schema /*schema*/, AsyncStreamInfo /*info*/) noexcept override {
    notify_(context_, "schema", 0);
  }
  void on_task() noexcept override { notify_(context_, "task", 0); }
  void on_end() noexcept override { notify_(context_, "end", 0); }
  void on_error(const Error& error, std::string_view /*metadata*/) noexcept override {
    notify_(context_, "error", error.code());
  }

 private:
  Status answer() noexcept {
    const int code = std::exchange(refusal_, 0);
    return code == 0 ? Status() : Error(code, "the application does not take it");
  }

  FletchingSubjectNotify notify_;
  void* context_;
  int refusal_ = 0;
};

struct PlayedConsumer {
  std::shared_ptr<Notifier> notifier;
  AsyncConsumer consumer;

  static PlayedConsumer& from(void* self) { return *static_cast<PlayedConsumer*>(self); }
};

inline Status make_consumer(FletchingSubjectNotify notify, void* context,
                            FletchingSubjectConsumer* out) {
  auto notifier = std::make_shared<Notifier>(notify, context);
  Result<AsyncConsumer> consumer = AsyncConsumer::create(notifier);
  if (!consumer) return consumer.error();
  auto* const played = new PlayedConsumer{std::move(notifier), *std::move(consumer)};
  out->self = played;
  out->handler = played->consumer.handler();
  out->request = [](void* self, std::int64_t n) {
    (void)PlayedConsumer::from(self).consumer.request(n);
  };
  out->take = [](void* self) {
    const std::optional<Result<AsyncBatch>> batch = PlayedConsumer::from(self).consumer.take();
    return !batch || batch->ok() ? 0 : batch->error().code();
  };
  out->drop = [](void* self) { return PlayedConsumer::from(self).consumer.drop() ? 0 : ENOENT; };
  out->cancel = [](void* self) { PlayedConsumer::from(self).consumer.cancel(); };
  out->refuse_next = [](void* self, int code) {
    PlayedConsumer::from(self).notifier->refuse_next(code);
  };
  out->state = [](void* self) {
    return static_cast<std::int32_t>(PlayedConsumer::from(self).consumer.state());
  };
  out->release = [](void* self) { delete &PlayedConsumer::from(self); };
  return {};
}

}  // namespace fletching

#endif  // FLETCHING_CONFORMANCE_ASYNC_HPP
