// SPDX-License-Identifier: Apache-2.0
//
// Rules of async streams that a consumer can violate.
#include <cerrno>
#include <cstdint>
#include <deque>
#include <thread>

#include "async.hpp"

namespace fletching::conformance {
namespace {

TEST(Receivers, AsyncAnyThread) {
  struct Fault : Relay {
    int on_next_task(ArrowAsyncTask* task, const char* metadata) override {
      return thread == std::this_thread::get_id() ? Relay::on_next_task(task, metadata) : EPERM;
    }
    std::thread::id thread = std::this_thread::get_id();
  };
  finds(receives<Fault>(), "producer.fresh-threads", "expected success");
}

// --- on_schema ---

TEST(Receivers, AsyncSchemaSet) {
  struct Fault : Relay {
    void open() override { outer.on_schema = nullptr; }
  };
  finds(receives<Fault>(), "producer.good");
}

TEST(Receivers, AsyncSchemaReturnsErrno) {
  struct Fault : Relay {
    int on_schema(ArrowSchema* /*schema*/) override { return -1; }
  };
  finds(receives<Fault>(), "producer.good");
}

TEST(Receivers, AsyncSchemaMovedOrReleased) { finds(receives<SchemaCopied>(), "producer.good"); }

TEST(Receivers, AsyncSchemaReleasedIndependently) {
  struct Fault : SchemaCopied {
    int on_schema(ArrowSchema* schema) override {
      const int code = SchemaCopied::on_schema(schema);
      schema->release = nullptr;
      return code;
    }
  };
  finds(receives<Fault>(), "producer.good", "not released: 1 structs");
}

TEST(Receivers, AsyncSchemaPointerNotKept) {
  struct Fault : Relay {
    int on_schema(ArrowSchema* schema) override {
      kept = schema;
      return Relay::on_schema(schema);
    }
    int on_next_task(ArrowAsyncTask* task, const char* metadata) override {
      kept->release(kept);
      return Relay::on_next_task(task, metadata);
    }
    ArrowSchema* kept = nullptr;
  };
  finds(receives<Fault>(), "producer.good");
}

// --- on_next_task ---

TEST(Receivers, AsyncNextSet) {
  struct Fault : Relay {
    void open() override { outer.on_next_task = nullptr; }
  };
  finds(receives<Fault>(), "producer.good");
}

TEST(Receivers, AsyncNextReturnsErrno) {
  struct Fault : Relay {
    int on_next_task(ArrowAsyncTask* /*task*/, const char* /*metadata*/) override { return -1; }
  };
  finds(receives<Fault>(), "producer.good");
}

TEST(Receivers, AsyncNextNullTaskAccepted) {
  struct Fault : Relay {
    int on_next_task(ArrowAsyncTask* task, const char* metadata) override {
      return task == nullptr ? EINVAL : Relay::on_next_task(task, metadata);
    }
  };
  finds(receives<Fault>(), "producer.good", "expected success");
}

TEST(Receivers, AsyncNextTaskCopied) {
  struct Fault : Relay {
    void open() override {
      static int streams = 0;
      is_read = streams++ % 2 == 0;  // the other stream is cancelled
    }
    int on_next_task(ArrowAsyncTask* task, const char* metadata) override {
      if (!is_read) return Relay::on_next_task(task, metadata);
      if (lent != nullptr) (void)lent->extract_data(lent, nullptr);
      Relay::request(1);
      lent = task;
      return task == nullptr ? Relay::on_next_task(nullptr, metadata) : 0;
    }
    ArrowAsyncTask* lent = nullptr;
    bool is_read = false;
  };
  finds(receives<Fault>(), "producer.good");
}

TEST(Receivers, AsyncNextMetadataCopied) {
  struct Fault : Relay {
    int on_next_task(ArrowAsyncTask* task, const char* metadata) override {
      if (task == nullptr && *kept != 0) return EBADMSG;  // the error for another number of pairs
      kept = metadata;
      return Relay::on_next_task(task, metadata);
    }
    const char* kept = "";
  };
  finds(receives<Fault>(), "producer.metadata", "expected success");
}

// --- on_error ---

TEST(Receivers, AsyncErrorSet) {
  struct Fault : Relay {
    void open() override { outer.on_error = nullptr; }
  };
  finds(receives<Fault>(), "producer.good");
}

TEST(Receivers, AsyncErrorTextsCopied) {
  struct Fault : Relay {
    void on_error(int /*code*/, const char* message, const char* /*metadata*/) override {
      kept = message;
    }
    void release() override {
      Relay::on_error(EIO, kept, nullptr);
      Relay::release();
    }
    const char* kept = nullptr;
  };
  finds(receives<Fault>(), "producer.error-midway", "expected the text of the call");
}

TEST(Receivers, AsyncErrorTextsNullAccepted) {
  struct Fault : Relay {
    void on_error(int code, const char* message, const char* metadata) override {
      Relay::on_error(message == nullptr ? EFAULT : code, message, metadata);
    }
  };
  finds(receives<Fault>(), "producer.error-text-null", "expected errno 5");
}

TEST(Receivers, AsyncErrorBeforeRequestAccepted) {
  struct Fault : Relay {
    void on_error(int code, const char* message, const char* metadata) override {
      Relay::on_error(is_asked ? code : EPROTO, message, metadata);
    }
    void request(std::int64_t n) override {
      is_asked = true;
      Relay::request(n);
    }
    bool is_asked = false;
  };
  finds(receives<Fault>(), "producer.error-first", "expected errno 5");
}

TEST(Receivers, AsyncErrorCallsNoProducer) {
  struct Fault : Relay {
    void on_error(int code, const char* message, const char* metadata) override {
      Relay::on_error(code, message, metadata);
      Relay::cancel();
    }
  };
  finds(receives<Fault>(), "producer.error-midway", "cancel was called from inside on_error");
}

// --- release and the handler's other members ---

TEST(Receivers, AsyncReleaseSet) {
  struct Fault : Relay {
    void open() override { outer.release = nullptr; }
    int on_next_task(ArrowAsyncTask* task, const char* metadata) override {
      const int code = Relay::on_next_task(task, metadata);
      if (task == nullptr) Relay::release();
      return code;
    }
  };
  finds(receives<Fault>(), "producer.good");
}

/// The consumer treats it as the end of a stream.
TEST(Receivers, AsyncReleaseBeforeRequestAccepted) {
  struct Fault : Relay {
    void release() override {
      ArrowSchema schema{};
      schema.format = "i";
      schema.release = [](ArrowSchema* self) { self->release = nullptr; };
      (void)on_schema(&schema);
      (void)on_next_task(nullptr, nullptr);
      Relay::release();
    }
  };
  finds(receives<Fault>(), "producer.release-first", "expected an error, got success");
}

TEST(Receivers, AsyncReleaseCallsNoProducer) {
  struct Fault : Relay {
    void release() override {
      Relay::cancel();
      Relay::release();
    }
  };
  finds(receives<Fault>(), "producer.good");
}

TEST(Receivers, AsyncHandlerReadyWhenPassed) {
  struct Fault : Relay {
    int on_schema(ArrowSchema* schema) override {
      outer.on_error = [](ArrowAsyncDeviceStreamHandler* self, int code, const char* message,
                          const char* metadata) { of(self).on_error(code, message, metadata); };
      return Relay::on_schema(schema);
    }
  };
  finds(receives<Fault>(), "producer.good");
}

// --- Tasks ---

TEST(Receivers, AsyncTaskExtractedOnce) {
  struct Fault : Relay {
    int extract(Task& task, ArrowDeviceArray* out) override {
      const int code = Relay::extract(task, out);
      (void)Relay::extract(task, nullptr);
      return code;
    }
  };
  finds(receives<Fault>(), "producer.good");
}

TEST(Receivers, AsyncTaskArrayReleasedSeparately) {
  struct Fault : Relay {
    int extract(Task& task, ArrowDeviceArray* out) override {
      const int code = Relay::extract(task, out);
      if (out != nullptr) out->array.release = [](ArrowArray* self) { self->release = nullptr; };
      return code;
    }
  };
  finds(receives<Fault>(), "producer.good", "not released: 3 structs");
}

TEST(Receivers, AsyncTaskPrivateDataUntouched) {
  struct Fault : Relay {
    int on_next_task(ArrowAsyncTask* task, const char* /*metadata*/) override {
      task->private_data = nullptr;
      (void)task->extract_data(task, nullptr);
      return EIO;
    }
  };
  finds(receives<Fault>(), "producer.good");
}

// --- The producer ---

TEST(Receivers, AsyncRequestNeeded) {
  struct Fault : Relay {
    void request(std::int64_t /*n*/) override {}
  };
  finds(receives<Fault>(), "producer.good", "expected success");
}

TEST(Receivers, AsyncRequestPositive) {
  struct Fault : Relay {
    void request(std::int64_t n) override {
      Relay::request(0);
      Relay::request(n);
    }
  };
  finds(receives<Fault>(), "producer.good");
}

TEST(Receivers, AsyncCancelLateCallsAccepted) {
  struct Fault : Relay {
    int on_next_task(ArrowAsyncTask* task, const char* /*metadata*/) override {
      return task->extract_data(task, &lost);
    }
    ArrowDeviceArray lost{};
  };
  finds(receives<Fault>(), "producer.task-after-cancel", "not released: 1 structs");
}

TEST(Receivers, AsyncProducerPrivateDataUntouched) {
  struct Fault : Relay {
    void show() override { outer.producer->private_data = nullptr; }
  };
  finds(receives<Fault>(), "producer.good");
}

}  // namespace
}  // namespace fletching::conformance
