// SPDX-License-Identifier: Apache-2.0
//
// Rules of async streams that a producer can violate.
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <utility>

#include "async.hpp"

namespace fletching::conformance {
namespace {

constexpr const char* kBadMetadata = "\xff\xff\xff\xff";  // -1 pairs

// --- The stream as a whole ---

TEST(Senders, AsyncHandlersSerialized) {
  struct Fault : Relay {
    int extract(Task& task, ArrowDeviceArray* out) override {
      on_error(EIO, nullptr, nullptr);
      return Relay::extract(task, out);
    }
  };
  finds(sends<Fault>(), "handler.good");
}

TEST(Senders, AsyncErrorEndsStream) {
  struct Fault : Relay {
    void on_error(int /*code*/, const char* /*message*/, const char* /*metadata*/) override {}
  };
  finds(sends<Fault>(), "stream.next-fails");
}

TEST(Senders, AsyncHandlerFailureEndsStream) {
  struct Fault : Relay {
    int on_next_task(ArrowAsyncTask* task, const char* metadata) override {
      const int code = Relay::on_next_task(task, metadata);
      if (code != 0) on_error(code, nullptr, nullptr);
      return code;
    }
  };
  finds(sends<Fault>(), "handler.task-refused");
}

// --- on_schema ---

TEST(Senders, AsyncSchemaFirstAndOnce) {
  struct Fault : Relay {
    int on_schema(ArrowSchema* schema) override {
      (void)Relay::on_schema(schema);
      return Relay::on_schema(schema);
    }
  };
  finds(sends<Fault>(), "handler.good");
}

TEST(Senders, AsyncSchemaOnlyReleaseAfterFailure) {
  struct Fault : Relay {
    int on_schema(ArrowSchema* schema) override {
      const int code = Relay::on_schema(schema);
      (void)on_next_task(nullptr, nullptr);
      return code;
    }
  };
  finds(sends<Fault>(), "handler.schema-refused");
}

// --- on_next_task ---

TEST(Senders, AsyncNextSameSchema) {
  struct Fault : Relay {
    int extract(Task& task, ArrowDeviceArray* out) override {
      const int code = Relay::extract(task, out);
      out->array.n_buffers = 1;
      return code;
    }
  };
  finds(sends<Fault>(), "handler.good", "n_buffers is wrong: expected 2, got 1");
}

TEST(Senders, AsyncNextNotConcurrent) {
  struct Fault : Relay {
    int extract(Task& task, ArrowDeviceArray* out) override {
      (void)on_next_task(nullptr, nullptr);
      return Relay::extract(task, out);
    }
  };
  finds(sends<Fault>(), "handler.good");
}

TEST(Senders, AsyncNextOnlyReleaseAfterFailure) {
  struct Fault : Relay {
    int on_next_task(ArrowAsyncTask* task, const char* metadata) override {
      const int code = Relay::on_next_task(task, metadata);
      if (code != 0) (void)Relay::on_next_task(nullptr, nullptr);
      return code;
    }
  };
  finds(sends<Fault>(), "handler.task-refused");
}

TEST(Senders, AsyncNextNullTaskIsEnd) {
  struct Fault : Relay {
    int extract(Task& task, ArrowDeviceArray* out) override {
      const int code = Relay::extract(task, out);
      out->array.release(&out->array);
      return code;
    }
  };
  finds(sends<Fault>(), "handler.good");
}

TEST(Senders, AsyncNextTaskLivesDuringCall) {
  struct Fault : Relay {
    int on_next_task(ArrowAsyncTask* task, const char* /*metadata*/) override {
      block[0] = 0;
      return Relay::on_next_task(task, block.data());
    }
    int extract(Task& task, ArrowDeviceArray* out) override {
      block[0] = 1;
      return Relay::extract(task, out);
    }
    std::array<char, 64> block{};
  };
  finds(sends<Fault>(), "handler.good");
}

TEST(Senders, AsyncNextMetadataEncoding) {
  struct Fault : Relay {
    int on_next_task(ArrowAsyncTask* task, const char* /*metadata*/) override {
      return Relay::on_next_task(task, kBadMetadata);
    }
  };
  finds(sends<Fault>(), "handler.good");
}

// --- on_error ---

TEST(Senders, AsyncErrorThenReleaseOnly) {
  struct Fault : Relay {
    void on_error(int code, const char* message, const char* metadata) override {
      Relay::on_error(code, message, metadata);
      Relay::on_error(code, message, metadata);
    }
  };
  finds(sends<Fault>(), "handler.request-zero");
}

TEST(Senders, AsyncErrorErrnoCodes) {
  struct Fault : Relay {
    void on_error(int code, const char* message, const char* metadata) override {
      Relay::on_error(-code, message, metadata);
    }
  };
  finds(sends<Fault>(), "handler.request-zero");
}

TEST(Senders, AsyncErrorTextsLiveDuringCall) {
  struct Fault : Relay {
    void on_error(int code, const char* message, const char* metadata) override {
      text = message;
      Relay::on_error(code, text.c_str(), metadata);
    }
    void request(std::int64_t n) override {
      if (text.empty()) return Relay::request(n);
      text[0] = '#';  // while on_error is running
    }
    std::string text;
  };
  finds(sends<Fault>(), "handler.calls-in-error");
}

TEST(Senders, AsyncErrorMetadataEncoding) {
  struct Fault : Relay {
    void on_error(int code, const char* message, const char* /*metadata*/) override {
      Relay::on_error(code, message, kBadMetadata);
    }
  };
  finds(sends<Fault>(), "handler.request-zero");
}

// --- release and the handler's other members ---

TEST(Senders, AsyncReleaseAlwaysCalled) {
  struct Fault : Relay {
    void release() override {}
  };
  finds(sends<Fault>(), "handler.good", "not released: 1 handlers");
}

/// The suite waits for the schema's release, so the late call falls into this case.
struct CallsAfterRelease : SchemaCopied {
  int on_schema(ArrowSchema* schema) override {
    const int code = SchemaCopied::on_schema(schema);
    kept = *schema;
    schema->release = nullptr;
    return code;
  }
  void release() override {
    SchemaCopied::release();
    call_late();
    kept.release(&kept);
  }
  virtual void call_late() = 0;
  ArrowSchema kept{};
};

TEST(Senders, AsyncReleaseLast) {
  struct Fault : CallsAfterRelease {
    void call_late() override { (void)on_next_task(nullptr, nullptr); }
  };
  finds(sends<Fault>(), "handler.good");
}

TEST(Senders, AsyncReleaseLikeArray) {
  struct Fault : CallsAfterRelease {
    void call_late() override { inner->release(inner); }
  };
  finds(sends<Fault>(), "handler.good");
}

TEST(Senders, AsyncHandlerProducerSetFirst) {
  struct Fault : Relay {
    void show() override { inner->producer = nullptr; }
  };
  finds(sends<Fault>(), "handler.schema-refused");
}

TEST(Senders, AsyncHandlerPrivateDataUntouched) {
  struct Fault : Relay {
    void show() override { inner->private_data = nullptr; }
  };
  finds(sends<Fault>(), "handler.good");
}

/// A rule for consumers.
TEST(Senders, AsyncHandlerProducerNotBeforeSchema) {
  FletchingSubject subject = receives<Relay>();
  subject.send = [](void* context, ArrowDeviceArrayStream* stream,
                    ArrowAsyncDeviceStreamHandler* handler, FletchingMessage* message) {
    relays().back()->request(1);
    return good().send(context, stream, handler, message);
  };
  finds(subject, "stream.good");
}

// --- Tasks ---

TEST(Senders, AsyncTaskExtractSet) {
  struct Fault : Relay {
    int on_next_task(ArrowAsyncTask* task, const char* metadata) override {
      ArrowAsyncTask given = *task;
      given.extract_data = nullptr;
      return inner->on_next_task(inner, &given, metadata);
    }
  };
  finds(sends<Fault>(), "handler.task-refused");
}

TEST(Senders, AsyncTaskNullAccepted) {
  struct Fault : Relay {
    int extract(Task& task, ArrowDeviceArray* out) override {
      (void)Relay::extract(task, out);
      return out == nullptr ? EINVAL : 0;
    }
  };
  finds(sends<Fault>(), "handler.extract-nothing");
}

TEST(Senders, AsyncTaskCleansUp) {
  struct Fault : Relay {
    int extract(Task& task, ArrowDeviceArray* out) override {
      return Relay::extract(task, out == nullptr ? &lost.emplace_back() : out);
    }
    std::deque<ArrowDeviceArray> lost;
  };
  finds(sends<Fault>(), "handler.extract-nothing", "not released: 3 structs");
}

TEST(Senders, AsyncTaskFailureThenOnError) {
  struct Fault : Relay {
    int extract(Task& task, ArrowDeviceArray* /*out*/) override {
      (void)Relay::extract(task, nullptr);
      return EIO;
    }
  };
  finds(sends<Fault>(), "handler.good");
}

TEST(Senders, AsyncTaskReturnsErrno) {
  struct Fault : Relay {
    int extract(Task& task, ArrowDeviceArray* /*out*/) override {
      (void)Relay::extract(task, nullptr);
      return -1;
    }
  };
  finds(sends<Fault>(), "handler.good");
}

/// Delivers the second task before the first.
TEST(Senders, AsyncTaskInOrder) {
  struct Fault : Relay {
    int on_next_task(ArrowAsyncTask* task, const char* metadata) override {
      if (task != nullptr && first.extract_data == nullptr) {
        first = *task;
        return 0;
      }
      const int code = Relay::on_next_task(task, metadata);
      if (!std::exchange(is_passed, true)) (void)Relay::on_next_task(&first, nullptr);
      return code;
    }
    ArrowAsyncTask first{};
    bool is_passed = false;
  };
  finds(sends<Fault>(), "stream.in-order", "rows in this order, got one of 2");
}

// --- request ---

TEST(Senders, AsyncRequestSet) {
  struct Fault : Relay {
    void show() override { shown.request = nullptr; }
  };
  finds(sends<Fault>(), "handler.schema-refused");
}

TEST(Senders, AsyncRequestInsideHandlers) {
  struct Fault : Relay {
    int on_schema(ArrowSchema* schema) override {
      const int code = Relay::on_schema(schema);
      on_error(EBUSY, "request inside on_schema", nullptr);
      Relay::cancel();
      return code;
    }
    void request(std::int64_t /*n*/) override {}
  };
  finds(sends<Fault>(), "handler.good", "release: called before the end");
}

TEST(Senders, AsyncRequestNotSynchronous) {
  struct Fault : Relay {
    void request(std::int64_t n) override {
      Relay::request(n);
      (void)on_next_task(nullptr, nullptr);
    }
  };
  finds(sends<Fault>(), "handler.good");
}

TEST(Senders, AsyncRequestScheduled) {
  struct Fault : Relay {
    void request(std::int64_t n) override {
      Relay::request(n);
      Relay::release();
    }
    void release() override {}
  };
  finds(sends<Fault>(), "handler.good");
}

/// The sum overflows.
TEST(Senders, AsyncRequestAddsUp) {
  struct Fault : Relay {
    void request(std::int64_t n) override {
      total += static_cast<std::uint64_t>(n);
      Relay::request(static_cast<std::int64_t>(total));
    }
    std::uint64_t total = 0;
  };
  finds(sends<Fault>(), "handler.request-many", "release: called before the end");
}

TEST(Senders, AsyncRequestNotExceeded) {
  struct Fault : Relay {
    void request(std::int64_t n) override { Relay::request(n > 0 ? n : 1); }
  };
  finds(sends<Fault>(), "handler.request-zero");
}

TEST(Senders, AsyncRequestRefusedWhenNotPositive) {
  struct Fault : Relay {
    void request(std::int64_t n) override { n > 0 ? Relay::request(n) : Relay::cancel(); }
  };
  finds(sends<Fault>(), "handler.request-zero");
}

TEST(Senders, AsyncRequestErrorsThroughOnError) {
  struct Fault : Relay {
    void on_error(int /*code*/, const char* /*message*/, const char* /*metadata*/) override {}
  };
  finds(sends<Fault>(), "handler.request-zero",
        "a request that is not positive: expected on_error");
}

TEST(Senders, AsyncRequestNothingAfterCancel) {
  struct Fault : Relay {
    void cancel() override {}
  };
  finds(sends<Fault>(), "handler.request-after-cancel");
}

// --- cancel ---

TEST(Senders, AsyncCancelStops) {
  struct Fault : Relay {
    void cancel() override {}
  };
  finds(sends<Fault>(), "handler.cancel-in-schema", "not released: 1 handlers");
}

/// Loses a cancel call from another thread.
TEST(Senders, AsyncCancelThreadSafe) {
  struct Fault : Relay {
    void show() override { thread = std::this_thread::get_id(); }
    void cancel() override {
      if (thread == std::this_thread::get_id()) Relay::cancel();
    }
    std::thread::id thread;
  };
  finds(sends<Fault>(), "handler.cancel-storm", "not released: 1 handlers");
}

TEST(Senders, AsyncCancelSet) {
  struct Fault : Relay {
    void show() override { shown.cancel = nullptr; }
  };
  finds(sends<Fault>(), "handler.good");
}

/// The last of 8 times 1,000 calls counts as a later cancel.
TEST(Senders, AsyncCancelIdempotent) {
  struct Fault : Relay {
    void cancel() override {
      Relay::cancel();
      if (++cancels == 8000) on_error(ECANCELED, nullptr, nullptr);
    }
    std::atomic<int> cancels{0};
  };
  finds(sends<Fault>(), "handler.cancel-storm");
}

TEST(Senders, AsyncCancelCallsNoHandler) {
  struct Fault : Relay {
    void cancel() override {
      (void)on_next_task(nullptr, nullptr);
      Relay::cancel();
    }
  };
  finds(sends<Fault>(), "handler.cancel-in-schema");
}

TEST(Senders, AsyncCancelNoOnError) {
  struct Fault : Relay {
    void release() override {
      on_error(ECANCELED, nullptr, nullptr);
      Relay::release();
    }
  };
  finds(sends<Fault>(), "handler.cancel-in-schema");
}

// --- The producer's other members ---

TEST(Senders, AsyncProducerDeviceTypeSet) {
  struct Fault : Relay {
    void show() override { shown.device_type = 0; }
  };
  finds(sends<Fault>(), "handler.good");
}

TEST(Senders, AsyncProducerOneDeviceType) {
  struct Fault : Relay {
    int extract(Task& task, ArrowDeviceArray* out) override {
      const int code = Relay::extract(task, out);
      ++out->device_type;
      return code;
    }
  };
  finds(sends<Fault>(), "handler.good");
}

/// Imitates a producer that was freed with the first batch: later requests have no effect.
TEST(Senders, AsyncProducerOutlivesHandler) {
  struct Fault : Relay {
    int on_next_task(ArrowAsyncTask* task, const char* metadata) override {
      const int code = Relay::on_next_task(task, metadata);
      shown.request = [](ArrowAsyncProducer* /*self*/, std::int64_t /*n*/) {};
      shown.cancel = [](ArrowAsyncProducer* /*self*/) {};
      return code;
    }
  };
  finds(sends<Fault>(), "handler.good", "not released: 1 handlers");
}

TEST(Senders, AsyncProducerMetadataEncoding) {
  struct Fault : Relay {
    void show() override { shown.additional_metadata = kBadMetadata; }
  };
  finds(sends<Fault>(), "handler.good");
}

}  // namespace
}  // namespace fletching::conformance
