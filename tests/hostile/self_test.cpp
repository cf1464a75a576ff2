// Plays the hostile peer against code with deliberate mistakes, which Finish must report. The
// conformance suite plays each case against correct code, where it must report none.
#include <gtest/gtest.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "hostile.h"

namespace {

std::string finish() {
  FletchingMessage message;
  return FletchingHostileFinish(&message) == 0 ? "" : message.text;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

template <class Raw>
void release(Raw* raw) {
  if (raw->release != nullptr) raw->release(raw);
  raw->release = nullptr;
}

TEST(Catalogue, NamesAreUniqueAndComplete) {
  std::set<std::string> names;
  for (int32_t i = 0; i < FletchingHostileCaseCount(); ++i) {
    const std::string name = FletchingHostileCaseName(i);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_STRNE(FletchingHostileCaseDescription(i), "") << name;
    const int32_t outcome = FletchingHostileCaseOutcome(i);
    EXPECT_GE(outcome, kFletchingHostileAccepted) << name;
    EXPECT_LE(outcome, kFletchingHostileStalled) << name;
    EXPECT_EQ(FletchingHostileCaseCode(i) != 0, outcome == kFletchingHostileReported) << name;
  }
  EXPECT_GT(names.size(), 150U);
  for (const int32_t index : {-1, FletchingHostileCaseCount(), INT32_MIN, INT32_MAX}) {
    EXPECT_EQ(FletchingHostileCaseName(index), nullptr);
    EXPECT_EQ(FletchingHostileCaseParty(index), 0);
  }
}

TEST(Catalogue, ErrorNamesUnknownCase) {
  FletchingMessage message;
  ArrowSchema schema;
  EXPECT_EQ(FletchingHostileExportSchema("schema.none", &schema, &message), EINVAL);
  EXPECT_TRUE(says(message.text, "schema.none")) << message.text;
  EXPECT_EQ(FletchingHostileExportSchema(nullptr, &schema, &message), EINVAL);
  EXPECT_EQ(FletchingHostileExportSchema("schema.good", nullptr, nullptr), EINVAL);
}

TEST(Schemas, ReportsLeak) {
  ArrowSchema schema;
  ASSERT_EQ(FletchingHostileExportSchema("schema.good-children", &schema, nullptr), 0);
  EXPECT_EQ(finish(), "not released: 3 structs");
  EXPECT_EQ(finish(), "");
  release(&schema);
  EXPECT_EQ(finish(), "");
}

TEST(Schemas, ReportsSecondRelease) {
  ArrowSchema schema;
  ASSERT_EQ(FletchingHostileExportSchema("schema.release-forgets", &schema, nullptr), 0);
  schema.release(&schema);
  schema.release(&schema);
  EXPECT_TRUE(says(finish(), "release of a schema was called on what is released"));
}

TEST(Streams, ReportsReleaseAfterFailedCall) {
  ArrowArrayStream stream;
  ASSERT_EQ(FletchingHostileExportStream("stream.next-partial", &stream, nullptr), 0);
  ArrowArray array;
  EXPECT_EQ(stream.get_next(&stream, &array), ENOMEM);
  release(&array);
  release(&stream);
  EXPECT_TRUE(says(finish(), "that a failed call left behind was released"));
}

TEST(Streams, ReportsGetLastErrorBeforeError) {
  ArrowArrayStream stream;
  ASSERT_EQ(FletchingHostileExportStream("stream.good", &stream, nullptr), 0);
  EXPECT_EQ(stream.get_last_error(&stream), nullptr);
  release(&stream);
  EXPECT_TRUE(says(finish(), "get_last_error was called"));
}

// --- A consumer for the async producers ---

struct Consumer {
  ArrowAsyncDeviceStreamHandler base{};
  bool keeps = false;          // a mistake: no task is extracted
  bool twice = false;          // a mistake: every task is extracted twice
  bool asks_in_error = false;  // a mistake
  bool has_schema = false;
  bool over = false;
  std::vector<ArrowAsyncTask> queue;

  Consumer() {
    base.private_data = this;
    base.on_schema = [](ArrowAsyncDeviceStreamHandler* self, ArrowSchema* schema) {
      return of(self)->on_schema(schema);
    };
    base.on_next_task = [](ArrowAsyncDeviceStreamHandler* self, ArrowAsyncTask* task, const char*) {
      return of(self)->on_next_task(task);
    };
    base.on_error = [](ArrowAsyncDeviceStreamHandler* self, int, const char*, const char*) {
      of(self)->on_error();
    };
    base.release = [](ArrowAsyncDeviceStreamHandler* self) { of(self)->on_release(); };
  }

  static Consumer* of(ArrowAsyncDeviceStreamHandler* self) {
    return static_cast<Consumer*>(self->private_data);
  }

  int refuse() {
    over = true;
    return EINVAL;
  }

  int on_schema(ArrowSchema* schema) {
    if (has_schema || schema == nullptr || schema->release == nullptr) return refuse();
    if (base.producer == nullptr || base.producer->request == nullptr) return refuse();
    has_schema = true;
    release(schema);
    base.producer->request(base.producer, 1);
    return 0;
  }

  int on_next_task(ArrowAsyncTask* task) {
    if (!has_schema || over) return refuse();
    if (task == nullptr) {
      over = true;
      return 0;
    }
    if (task->extract_data == nullptr) return refuse();
    if (keeps) {
      queue.push_back(*task);
      return 0;
    }
    ArrowDeviceArray array;
    std::memset(&array, 0, sizeof array);
    const int code = task->extract_data(task, &array);
    if (twice) {
      EXPECT_EQ(task->extract_data(task, &array), EINVAL);
    }
    if (code == 0) release(&array.array);
    if (code == 0 && base.producer->request != nullptr) base.producer->request(base.producer, 1);
    if (code != 0 && base.producer->cancel != nullptr) base.producer->cancel(base.producer);
    return 0;
  }

  void on_error() {
    over = true;
    if (asks_in_error) base.producer->request(base.producer, 1);
  }

  void on_release() { base.release = nullptr; }
};

TEST(Producers, CancelEndsStalledProducer) {
  Consumer consumer;
  ASSERT_EQ(FletchingHostileStartProducer("producer.stalls", &consumer.base, nullptr), 0);
  consumer.base.producer->cancel(consumer.base.producer);
  EXPECT_EQ(finish(), "");
}

TEST(Producers, ReportsSecondExtraction) {
  Consumer consumer;
  consumer.twice = true;
  ASSERT_EQ(FletchingHostileStartProducer("producer.good", &consumer.base, nullptr), 0);
  EXPECT_TRUE(says(finish(), "extract_data was called on what is released"));
}

TEST(Producers, ReportsUnextractedTask) {
  Consumer consumer;
  consumer.keeps = true;
  ASSERT_EQ(FletchingHostileStartProducer("producer.release-without-end", &consumer.base, nullptr),
            0);
  consumer.base.producer->request(consumer.base.producer, 1);
  EXPECT_EQ(finish(), "not extracted: 2 tasks");
  for (ArrowAsyncTask& task : consumer.queue) task.extract_data(&task, nullptr);
  EXPECT_EQ(finish(), "");
}

TEST(Producers, ReportsCallInsideOnError) {
  Consumer consumer;
  consumer.asks_in_error = true;
  ASSERT_EQ(FletchingHostileStartProducer("producer.error-midway", &consumer.base, nullptr), 0);
  EXPECT_TRUE(says(finish(), "request was called from inside on_error or release"));
}

TEST(Producers, ReportsCallAfterRelease) {
  Consumer consumer;
  ASSERT_EQ(FletchingHostileStartProducer("producer.empty", &consumer.base, nullptr), 0);
  EXPECT_EQ(finish(), "");
  consumer.base.producer->cancel(consumer.base.producer);
  EXPECT_TRUE(says(finish(), "cancel was called on what is released"));
}

// --- Producers for the hostile consumers: the peer's own array cases and streams ---

TEST(ArrayConsumers, ReportsDoubleRelease) {
  ArrowSchema schema;
  ArrowDeviceArray array;
  ASSERT_EQ(FletchingHostileExportArray("array.good", &schema, &array, nullptr), 0);
  release(&schema);
  EXPECT_EQ(FletchingHostileConsumeArray("array-consumer.release-twice", &array, nullptr), 0);
  EXPECT_TRUE(says(finish(), "release of an array was called on what is released"));
}

TEST(ArrayConsumers, ReportsProducerFaults) {
  FletchingMessage message;
  ArrowSchema schema;
  ArrowDeviceArray array;
  ASSERT_EQ(FletchingHostileExportArray("array.reserved", &schema, &array, nullptr), 0);
  release(&schema);
  EXPECT_EQ(FletchingHostileConsumeArray("array-consumer.plain", &array, &message), EBADMSG);
  EXPECT_STREQ(message.text, "reserved is not zero");
  EXPECT_EQ(FletchingHostileConsumeArray("array-consumer.plain", &array, &message), EBADMSG);
  EXPECT_STREQ(message.text, "the array is released");
  EXPECT_EQ(finish(), "");
}

TEST(StreamConsumers, ReportsWrongStream) {
  FletchingMessage message;
  ArrowArrayStream stream;
  ASSERT_EQ(FletchingHostileExportStream("stream.end-then-more", &stream, nullptr), 0);
  EXPECT_EQ(FletchingHostileConsumeStream("stream-consumer.next-after-end", 3, &stream, &message),
            EBADMSG);
  EXPECT_TRUE(says(message.text, "get_next: array after the end")) << message.text;
  ASSERT_EQ(FletchingHostileExportStream("stream.fails-midway", &stream, nullptr), 0);
  EXPECT_EQ(FletchingHostileConsumeStream("stream-consumer.plain", 3, &stream, &message), EBADMSG);
  EXPECT_TRUE(says(message.text, "get_next has failed")) << message.text;
  EXPECT_EQ(finish(), "");
}

// --- A producer for the hostile handlers ---

class Producer {
 public:
  bool unasked = false;       // a mistake: tasks without demand
  bool schema_twice = false;  // a mistake

  explicit Producer(ArrowAsyncDeviceStreamHandler* handler, int batches)
      : handler_(handler), left_(batches) {
    raw_.device_type = ARROW_DEVICE_CPU;
    raw_.private_data = this;
    raw_.request = [](ArrowAsyncProducer* self, int64_t n) { of(self)->request(n); };
    raw_.cancel = [](ArrowAsyncProducer* self) { of(self)->cancel(); };
    handler->producer = &raw_;
  }

  void run() {
    if (handler_->on_schema == nullptr || handler_->on_next_task == nullptr) {
      if (handler_->release != nullptr) handler_->release(handler_);
      return;
    }
    play();
    wait_for_tasks();
    if (handler_->release != nullptr) handler_->release(handler_);
  }

 private:
  struct Task {
    Producer* producer;
    bool extracted = false;
  };

  static Producer* of(ArrowAsyncProducer* self) {
    return static_cast<Producer*>(self->private_data);
  }

  void request(int64_t n) {
    const std::lock_guard guard(lock_);
    if (n <= 0) bad_request_ = true;
    if (n > 0) demand_ = n > INT64_MAX - demand_ ? INT64_MAX : demand_ + n;
    changed_.notify_all();
  }

  void cancel() {
    const std::lock_guard guard(lock_);
    cancelled_ = true;
    changed_.notify_all();
  }

  static void release_schema(ArrowSchema* schema) { schema->release = nullptr; }
  static void release_array(ArrowArray* array) { array->release = nullptr; }

  static int extract(ArrowAsyncTask* self, ArrowDeviceArray* out) {
    auto* task = static_cast<Task*>(self->private_data);
    Producer* producer = task->producer;
    const std::lock_guard guard(producer->lock_);
    if (task->extracted) return EINVAL;
    task->extracted = true;
    --producer->open_;
    producer->changed_.notify_all();
    if (out == nullptr) return 0;
    std::memset(out, 0, sizeof *out);
    out->array.release = release_array;
    return 0;
  }

  void play() {
    for (int i = 0; i < (schema_twice ? 2 : 1); ++i) {
      ArrowSchema schema{};
      schema.format = "i";
      schema.release = release_schema;
      if (handler_->on_schema(handler_, &schema) != 0) return;
    }
    while (left_ > 0) {
      if (!wait_for_demand()) return;
      if (!deliver()) return;
    }
    handler_->on_next_task(handler_, nullptr, nullptr);
  }

  bool wait_for_demand() {
    std::unique_lock guard(lock_);
    changed_.wait(guard, [&] { return unasked || demand_ > 0 || cancelled_ || bad_request_; });
    if (cancelled_) return false;
    if (bad_request_) {
      guard.unlock();
      if (handler_->on_error != nullptr) handler_->on_error(handler_, EINVAL, "n", nullptr);
      return false;
    }
    if (demand_ > 0) --demand_;
    return true;
  }

  bool deliver() {
    --left_;
    Task& task = tasks_.emplace_back(Task{this});
    ArrowAsyncTask handed{extract, &task};
    {
      const std::lock_guard guard(lock_);
      ++open_;
    }
    if (handler_->on_next_task(handler_, &handed, nullptr) == 0) return true;
    const std::lock_guard guard(lock_);
    --open_;
    return false;
  }

  void wait_for_tasks() {
    std::unique_lock guard(lock_);
    changed_.wait(guard, [&] { return open_ == 0; });
  }

  ArrowAsyncDeviceStreamHandler* handler_;
  ArrowAsyncProducer raw_{};
  std::deque<Task> tasks_;  // a deque keeps addresses stable
  int left_;
  std::mutex lock_;
  std::condition_variable changed_;
  int64_t demand_ = 0;
  int open_ = 0;
  bool cancelled_ = false;
  bool bad_request_ = false;
};

TEST(Handlers, ReportsTasksWithoutDemand) {
  ArrowAsyncDeviceStreamHandler* handler = nullptr;
  ASSERT_EQ(FletchingHostileOpenHandler("handler.never-asks", 3, &handler, nullptr), 0);
  Producer producer(handler, 3);
  producer.unasked = true;
  producer.run();
  EXPECT_TRUE(says(finish(), "called without demand"));
}

TEST(Handlers, ReportsSecondSchema) {
  ArrowAsyncDeviceStreamHandler* handler = nullptr;
  ASSERT_EQ(FletchingHostileOpenHandler("handler.good", 3, &handler, nullptr), 0);
  Producer producer(handler, 3);
  producer.schema_twice = true;
  producer.run();
  EXPECT_TRUE(says(finish(), "on_schema was called twice"));
}

TEST(Handlers, ReportsEarlyOrDoubleRelease) {
  ArrowAsyncDeviceStreamHandler* handler = nullptr;
  ASSERT_EQ(FletchingHostileOpenHandler("handler.good", 3, &handler, nullptr), 0);
  handler->release(handler);
  EXPECT_TRUE(says(finish(), "release: called before the end"));
  handler->release(handler);
  EXPECT_TRUE(says(finish(), "release was called after release"));
}

}  // namespace
