// The hostile peer against code that is right, where Finish has to say nothing, and against code
// that is wrong on purpose, where it has to say what.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "hostile.h"

namespace {

struct NamedCase {
  std::string name;
  int32_t outcome;
  int32_t code;
};

std::vector<NamedCase> cases_of(int32_t party) {
  std::vector<NamedCase> found;
  for (int32_t i = 0; i < FletchingHostileCaseCount(); ++i) {
    if (FletchingHostileCaseParty(i) != party) continue;
    found.push_back(
        {FletchingHostileCaseName(i), FletchingHostileCaseOutcome(i), FletchingHostileCaseCode(i)});
  }
  EXPECT_FALSE(found.empty());
  return found;
}

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

TEST(Catalogue, AnUnknownCaseIsAnErrorThatNamesIt) {
  FletchingMessage message;
  ArrowSchema schema;
  EXPECT_EQ(FletchingHostileExportSchema("schema.none", &schema, &message), EINVAL);
  EXPECT_TRUE(says(message.text, "schema.none")) << message.text;
  EXPECT_EQ(FletchingHostileExportSchema(nullptr, &schema, &message), EINVAL);
  EXPECT_EQ(FletchingHostileExportSchema("schema.good", nullptr, nullptr), EINVAL);
}

TEST(Schemas, EachIsReleasedOnce) {
  for (const NamedCase& played : cases_of(kFletchingHostileSchema)) {
    ArrowSchema schema;
    ASSERT_EQ(FletchingHostileExportSchema(played.name.c_str(), &schema, nullptr), 0);
    release(&schema);
    EXPECT_EQ(finish(), "") << played.name;
  }
}

TEST(Schemas, ALeakIsReported) {
  ArrowSchema schema;
  ASSERT_EQ(FletchingHostileExportSchema("schema.good-children", &schema, nullptr), 0);
  EXPECT_EQ(finish(), "not released: 3 structs");
  EXPECT_EQ(finish(), "");
  release(&schema);
  EXPECT_EQ(finish(), "");
}

TEST(Schemas, ASecondReleaseIsReported) {
  ArrowSchema schema;
  ASSERT_EQ(FletchingHostileExportSchema("schema.release-forgets", &schema, nullptr), 0);
  schema.release(&schema);
  schema.release(&schema);
  EXPECT_TRUE(says(finish(), "release of a schema was called on what is released"));
}

TEST(Arrays, EachIsReleasedOnceAndSoAreMovedChildren) {
  for (const NamedCase& played : cases_of(kFletchingHostileArray)) {
    ArrowSchema schema;
    ArrowDeviceArray array;
    ASSERT_EQ(FletchingHostileExportArray(played.name.c_str(), &schema, &array, nullptr), 0);
    ArrowArray child{};
    if (played.name == "array.good-children") {
      child = *array.array.children[0];
      array.array.children[0]->release = nullptr;
    }
    release(&array.array);
    release(&schema);
    if (child.release != nullptr) {
      EXPECT_EQ(static_cast<const int32_t*>(child.buffers[1])[2], 3);
      release(&child);
    }
    EXPECT_EQ(finish(), "") << played.name;
  }
}

// Reads as one has to, and returns the outcome: "ok", "refused" or the errno.
template <class Stream, class Out>
std::string read(Stream* stream, Out* out, ArrowArray* base) {
  if (stream->get_schema == nullptr || stream->get_next == nullptr) return "refused";
  ArrowSchema schema;
  std::memset(&schema, 0, sizeof schema);
  int code = stream->get_schema(stream, &schema);
  if (code == 0 && schema.release == nullptr) return "refused";
  if (code == 0) release(&schema);
  while (code == 0) {
    std::memset(out, 0, sizeof *out);
    code = stream->get_next(stream, out);
    if (code != 0 || base->release == nullptr) break;
    release(base);
  }
  if (code == 0) return "ok";
  if (stream->get_last_error != nullptr) stream->get_last_error(stream);
  return code < 0 ? "refused" : std::to_string(code);
}

std::string expected(const NamedCase& played) {
  if (played.outcome == kFletchingHostileReported) return std::to_string(played.code);
  return played.outcome == kFletchingHostileRefused ? "refused" : "ok";
}

TEST(Streams, EachEndsAsTheCatalogueSays) {
  for (const NamedCase& played : cases_of(kFletchingHostileStream)) {
    ArrowArrayStream stream;
    ArrowArray array;
    ASSERT_EQ(FletchingHostileExportStream(played.name.c_str(), &stream, nullptr), 0);
    if (stream.release == nullptr) continue;
    EXPECT_EQ(read(&stream, &array, &array), expected(played)) << played.name;
    release(&stream);
    EXPECT_EQ(finish(), "") << played.name;
  }
}

TEST(Streams, EachEndsTheSameFromADeviceStream) {
  for (const NamedCase& played : cases_of(kFletchingHostileStream)) {
    ArrowDeviceArrayStream stream;
    ArrowDeviceArray array;
    ASSERT_EQ(FletchingHostileExportDeviceStream(played.name.c_str(), &stream, nullptr), 0);
    if (stream.release == nullptr) continue;
    EXPECT_EQ(read(&stream, &array, &array.array), expected(played)) << played.name;
    release(&stream);
    EXPECT_EQ(finish(), "") << played.name;
  }
}

TEST(Streams, DeviceCasesAreOfDeviceStreamsAlone) {
  for (const NamedCase& played : cases_of(kFletchingHostileDeviceStream)) {
    ArrowArrayStream plain;
    EXPECT_EQ(FletchingHostileExportStream(played.name.c_str(), &plain, nullptr), EINVAL);
    ArrowDeviceArrayStream stream;
    ArrowDeviceArray array;
    ASSERT_EQ(FletchingHostileExportDeviceStream(played.name.c_str(), &stream, nullptr), 0);
    EXPECT_EQ(read(&stream, &array, &array.array), "ok") << played.name;
    release(&stream);
    EXPECT_EQ(finish(), "") << played.name;
  }
}

TEST(Streams, WhatAFailedCallLeftMayNotBeReleased) {
  ArrowArrayStream stream;
  ASSERT_EQ(FletchingHostileExportStream("stream.next-partial", &stream, nullptr), 0);
  ArrowArray array;
  EXPECT_EQ(stream.get_next(&stream, &array), ENOMEM);
  release(&array);
  release(&stream);
  EXPECT_TRUE(says(finish(), "that a failed call left behind was released"));
}

TEST(Streams, TheTextMayNotBeAskedForBeforeAnError) {
  ArrowArrayStream stream;
  ASSERT_EQ(FletchingHostileExportStream("stream.good", &stream, nullptr), 0);
  EXPECT_EQ(stream.get_last_error(&stream), nullptr);
  release(&stream);
  EXPECT_TRUE(says(finish(), "get_last_error was called"));
}

// --- A consumer for the async producers ---

struct Consumer {
  ArrowAsyncDeviceStreamHandler base{};
  int errors = 0;
  std::optional<int> reported;
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
    base.on_error = [](ArrowAsyncDeviceStreamHandler* self, int code, const char*, const char*) {
      of(self)->on_error(code);
    };
    base.release = [](ArrowAsyncDeviceStreamHandler* self) { of(self)->on_release(); };
  }

  static Consumer* of(ArrowAsyncDeviceStreamHandler* self) {
    return static_cast<Consumer*>(self->private_data);
  }

  int refuse() {
    ++errors;
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

  void on_error(int code) {
    reported = code;
    over = true;
    if (asks_in_error) base.producer->request(base.producer, 1);
  }

  void on_release() { base.release = nullptr; }
};

TEST(Producers, EachEndsWithACarefulConsumer) {
  for (const NamedCase& played : cases_of(kFletchingHostileProducer)) {
    if (played.outcome == kFletchingHostileStalled) continue;
    // A nested call deadlocks or not, but this consumer is not made for two at once.
    if (says(played.name, "overlapping")) continue;
    Consumer consumer;
    ASSERT_EQ(FletchingHostileStartProducer(played.name.c_str(), &consumer.base, nullptr), 0);
    EXPECT_EQ(finish(), "") << played.name;
    EXPECT_EQ(consumer.base.release, nullptr) << played.name;
    if (played.outcome == kFletchingHostileAccepted) {
      EXPECT_EQ(consumer.errors, 0) << played.name;
      EXPECT_FALSE(consumer.reported) << played.name;
    }
    if (played.outcome == kFletchingHostileReported && !says(played.name, "extract")) {
      ASSERT_TRUE(consumer.reported) << played.name;
      // What is not an errno value reads EIO (async-error-code).
      EXPECT_EQ(*consumer.reported > 0 ? *consumer.reported : EIO, played.code) << played.name;
    }
  }
}

TEST(Producers, AStalledOneEndsWhenItIsCancelled) {
  Consumer consumer;
  ASSERT_EQ(FletchingHostileStartProducer("producer.stalls", &consumer.base, nullptr), 0);
  consumer.base.producer->cancel(consumer.base.producer);
  EXPECT_EQ(finish(), "");
}

TEST(Producers, ASecondExtractionIsReported) {
  Consumer consumer;
  consumer.twice = true;
  ASSERT_EQ(FletchingHostileStartProducer("producer.good", &consumer.base, nullptr), 0);
  EXPECT_TRUE(says(finish(), "extract_data was called on what is released"));
}

TEST(Producers, ATaskThatIsNotExtractedIsReported) {
  Consumer consumer;
  consumer.keeps = true;
  ASSERT_EQ(FletchingHostileStartProducer("producer.release-without-end", &consumer.base, nullptr),
            0);
  consumer.base.producer->request(consumer.base.producer, 1);
  EXPECT_EQ(finish(), "not extracted: 2 tasks");
  for (ArrowAsyncTask& task : consumer.queue) task.extract_data(&task, nullptr);
  EXPECT_EQ(finish(), "");
}

TEST(Producers, ACallFromInsideOnErrorIsReported) {
  Consumer consumer;
  consumer.asks_in_error = true;
  ASSERT_EQ(FletchingHostileStartProducer("producer.error-midway", &consumer.base, nullptr), 0);
  EXPECT_TRUE(says(finish(), "request was called from inside on_error or release"));
}

TEST(Producers, ACallAfterReleaseIsReported) {
  Consumer consumer;
  ASSERT_EQ(FletchingHostileStartProducer("producer.empty", &consumer.base, nullptr), 0);
  EXPECT_EQ(finish(), "");
  consumer.base.producer->cancel(consumer.base.producer);
  EXPECT_TRUE(says(finish(), "cancel was called on what is released"));
}

// --- Producers for the hostile consumers: the array cases and streams that the peer exports itself
// ---

TEST(ArrayConsumers, EachReleasesAGoodArrayOnce) {
  for (const NamedCase& played : cases_of(kFletchingHostileArrayConsumer)) {
    if (says(played.name, "twice")) continue;  // the peer's own arrays count it, see below
    ArrowSchema schema;
    ArrowDeviceArray array;
    ASSERT_EQ(FletchingHostileExportArray("array.good-children", &schema, &array, nullptr), 0);
    release(&schema);
    EXPECT_EQ(FletchingHostileConsumeArray(played.name.c_str(), &array, nullptr), 0);
    EXPECT_EQ(array.array.release, nullptr);
    EXPECT_EQ(finish(), "") << played.name;
  }
}

TEST(ArrayConsumers, ReleaseTwiceReleasesTwice) {
  ArrowSchema schema;
  ArrowDeviceArray array;
  ASSERT_EQ(FletchingHostileExportArray("array.good", &schema, &array, nullptr), 0);
  release(&schema);
  EXPECT_EQ(FletchingHostileConsumeArray("array-consumer.release-twice", &array, nullptr), 0);
  EXPECT_TRUE(says(finish(), "release of an array was called on what is released"));
}

TEST(ArrayConsumers, WhatAProducerOwesIsLookedAt) {
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

TEST(StreamConsumers, EachReadsAGoodStream) {
  for (const NamedCase& played : cases_of(kFletchingHostileStreamConsumer)) {
    if (says(played.name, "twice")) continue;
    FletchingMessage message;
    ArrowArrayStream plain;
    ASSERT_EQ(FletchingHostileExportStream("stream.good", &plain, nullptr), 0);
    EXPECT_EQ(FletchingHostileConsumeStream(played.name.c_str(), 3, &plain, &message), 0)
        << message.text;
    EXPECT_EQ(finish(), "") << played.name;
    ArrowDeviceArrayStream device;
    ASSERT_EQ(FletchingHostileExportDeviceStream("stream.good", &device, nullptr), 0);
    EXPECT_EQ(FletchingHostileConsumeDeviceStream(played.name.c_str(), 3, &device, &message), 0)
        << message.text;
    EXPECT_EQ(finish(), "") << played.name;
  }
}

TEST(StreamConsumers, AWrongStreamIsReported) {
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
  std::deque<Task> tasks_;  // addresses stay
  int left_;
  std::mutex lock_;
  std::condition_variable changed_;
  int64_t demand_ = 0;
  int open_ = 0;
  bool cancelled_ = false;
  bool bad_request_ = false;
};

TEST(Handlers, EachEndsWithACarefulProducer) {
  for (const NamedCase& played : cases_of(kFletchingHostileHandler)) {
    ArrowAsyncDeviceStreamHandler* handler = nullptr;
    ASSERT_EQ(FletchingHostileOpenHandler(played.name.c_str(), 7, &handler, nullptr), 0);
    Producer producer(handler, 7);
    std::thread thread([&] { producer.run(); });
    EXPECT_EQ(finish(), "") << played.name;
    thread.join();
  }
}

TEST(Handlers, TasksWithoutDemandAreReported) {
  ArrowAsyncDeviceStreamHandler* handler = nullptr;
  ASSERT_EQ(FletchingHostileOpenHandler("handler.never-asks", 3, &handler, nullptr), 0);
  Producer producer(handler, 3);
  producer.unasked = true;
  producer.run();
  EXPECT_TRUE(says(finish(), "called without demand"));
}

TEST(Handlers, ASecondSchemaIsReported) {
  ArrowAsyncDeviceStreamHandler* handler = nullptr;
  ASSERT_EQ(FletchingHostileOpenHandler("handler.good", 3, &handler, nullptr), 0);
  Producer producer(handler, 3);
  producer.schema_twice = true;
  producer.run();
  EXPECT_TRUE(says(finish(), "on_schema was called twice"));
}

TEST(Handlers, ReleaseTooEarlyOrTwiceIsReported) {
  ArrowAsyncDeviceStreamHandler* handler = nullptr;
  ASSERT_EQ(FletchingHostileOpenHandler("handler.good", 3, &handler, nullptr), 0);
  handler->release(handler);
  EXPECT_TRUE(says(finish(), "release: called before the end"));
  handler->release(handler);
  EXPECT_TRUE(says(finish(), "release was called after release"));
}

}  // namespace
