// An async stream as a device stream, the reverse, and both in sequence.
#include "fletching/async_adapters.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"
#include "async_support.hpp"
#include "stream_support.hpp"

namespace fletching::testing {
namespace {

/// A device stream of batches with the lengths 0, 1, 2, ..., which then fails or ends.
DeviceArrayStream a_stream(Ledger& ledger, int batches, int code = 0) {
  return make_device_stream(a_schema(ledger), ARROW_DEVICE_CPU,
                            [&ledger, batches, code, next = 0]() mutable -> Result<DeviceArray> {
                              if (next < batches) return a_batch(ledger, next++);
                              if (code != 0) return Error(code, "the disk is gone");
                              return DeviceArray();
                            })
      .value();
}

/// Sends a stream through send_async and AsyncReader, with a worker thread in between.
struct Pipe {
  explicit Pipe(DeviceArrayStream from, std::int64_t window = 2)
      : reader(AsyncReader::create(window).value()) {
    EXPECT_TRUE(send_async(std::move(from), reader.handler(), *worker).ok());
  }

  std::unique_ptr<WorkerThread> worker = WorkerThread::start().value();
  AsyncReader reader;
};

TEST(AsyncAdapters, RoundTripsStreamThroughAsync) {
  Ledger ledger;
  for (const std::int64_t window : {1, 2, 3, 64}) {
    for (const int batches : {0, 1, 3, 100}) {
      Pipe pipe(a_stream(ledger, batches), window);
      DeviceArrayStream stream = std::move(pipe.reader).open().value();
      EXPECT_EQ(stream->device_type, ARROW_DEVICE_CPU);
      StreamReader<ArrowDeviceArrayStream> reader(std::move(stream));
      EXPECT_STREQ(reader.schema().value()->format, "i");
      std::int64_t length = 0;
      for (Result<DeviceArray>& batch : reader) {
        ASSERT_TRUE(batch.ok()) << batch.error().message();
        EXPECT_EQ((*batch)->array.length, length++);
      }
      EXPECT_EQ(length, batches);
    }
  }
  EXPECT_EQ(ledger.live(), 0);
}

// Relays a foreign producer's stream.
TEST(AsyncAdapters, RelaysRecordBatchWithNulls) {
  Script script{.steps{{}}};
  {
    DeviceArrayStream stream = foreign_stream<ArrowDeviceArrayStream>(script);
    stream->get_schema = [](ArrowDeviceArrayStream* self, ArrowSchema* out) {
      const int code = foreign_get_schema(self, out);
      out->format = "+s";
      return code;
    };
    stream->get_next = [](ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
      const int code = foreign_get_next(self, out);
      out->array.null_count = 1;
      return code;
    };
    Pipe pipe(std::move(stream));
    StreamReader<ArrowDeviceArrayStream> reader(std::move(pipe.reader).open().value());
    EXPECT_EQ(next_of(reader).value().null_count(), 1);
    EXPECT_FALSE(reader.next());
  }
  expect_clean(script);
}

TEST(AsyncAdapters, BatchesOutliveStream) {
  Ledger ledger;
  DeviceArray kept;
  {
    Pipe pipe(a_stream(ledger, 3));
    StreamReader<ArrowDeviceArrayStream> reader(std::move(pipe.reader).open().value());
    kept = std::move(*reader.next()).value();
  }
  EXPECT_EQ(ledger.live(), 1);
  kept.release();
  EXPECT_EQ(ledger.live(), 0);
}

TEST(AsyncAdapters, KeepsErrorCodeAndText) {
  Ledger ledger;
  {
    Pipe pipe(a_stream(ledger, 0, ENOSPC));
    StreamReader<ArrowDeviceArrayStream> reader(std::move(pipe.reader).open().value());
    const Result<DeviceArray> batch = reader.next().value();
    ASSERT_FALSE(batch.ok());
    EXPECT_EQ(batch.error().code(), ENOSPC);
    EXPECT_EQ(batch.error().message(), "the disk is gone");
  }
  EXPECT_EQ(ledger.live(), 0);
}

TEST(AsyncAdapters, ReportsErrorBeforeSchema) {
  Result<AsyncReader> reader = AsyncReader::create();
  RunQueue queue;
  {
    Result<AsyncProducer> producer = AsyncProducer::start(reader->handler(), queue);
    producer->fail(Error(EACCES, "not for you"));
  }
  queue.run_ready();
  const Result<DeviceArrayStream> stream = std::move(*reader).open();
  ASSERT_FALSE(stream.ok());
  EXPECT_EQ(stream.error().code(), EACCES);
  EXPECT_EQ(stream.error().message(), "not for you");
}

TEST(AsyncAdapters, SchemaErrorLeavesHandlerUnchanged) {
  ArrowDeviceArrayStream broken{};
  broken.device_type = ARROW_DEVICE_CPU;
  broken.get_schema = [](ArrowDeviceArrayStream*, ArrowSchema*) { return EPERM; };
  broken.get_next = [](ArrowDeviceArrayStream*, ArrowDeviceArray*) { return EPERM; };
  broken.get_last_error = [](ArrowDeviceArrayStream*) -> const char* { return nullptr; };
  broken.release = [](ArrowDeviceArrayStream* self) { self->release = nullptr; };
  PeerHandler peer;
  RunQueue queue;
  const Status sent = send_async(DeviceArrayStream(&broken), &peer.raw, queue);
  EXPECT_EQ(code_of(sent), EPERM);
  EXPECT_EQ(peer.raw.producer, nullptr);
  EXPECT_EQ(peer.log, Log{});
}

TEST(AsyncAdapters, CreateRequestsOneWindow) {
  PeerProducer peer;
  Result<AsyncReader> reader = AsyncReader::create(4);
  peer.handler = reader->handler();
  peer.handler->producer = &peer.raw;
  peer.give_schema();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(peer.give_task(), 0);
  EXPECT_EQ(peer.log, Log{"request 4"});
  EXPECT_EQ(peer.give_task(), EINVAL) << "one more than the window";
  peer.release();
}

TEST(AsyncAdapters, ReadingRequestsHalfWindows) {
  PeerProducer peer;
  Result<AsyncReader> made = AsyncReader::create(4);
  peer.handler = made->handler();
  peer.handler->producer = &peer.raw;
  peer.give_schema();
  for (int i = 0; i < 4; ++i) peer.give_task();
  {
    StreamReader<ArrowDeviceArrayStream> reader(std::move(*made).open().value());
    EXPECT_TRUE(reader.next()->ok());
    EXPECT_TRUE(reader.next()->ok());
    EXPECT_EQ(peer.log, (Log{"request 4", "extract 0", "request 2", "extract 1"}));
    peer.log.clear();
  }
  EXPECT_EQ(peer.log, (Log{"cancel", "extract 2", "extract 3"})) << "released before its end";
  peer.release();
  EXPECT_EQ(peer.ledger.live(), 0);
}

TEST(AsyncAdapters, SurvivesAllocationFailures) {
  Ledger ledger;
  const std::int64_t failed = fail_each_allocation([&](Injection& inject) {
    const int code = inject([&] {
      Result<AsyncReader> reader = AsyncReader::create(2);
      if (!reader.ok()) return reader.error().code();
      RunQueue queue;
      Result<DeviceArrayStream> from = make_device_stream(
          a_schema(ledger), ARROW_DEVICE_CPU, [&ledger, next = 0]() mutable -> Result<DeviceArray> {
            return next < 2 ? a_batch(ledger, next++) : DeviceArray();
          });
      if (!from.ok()) return from.error().code();
      ArrowAsyncDeviceStreamHandler* handler = reader->handler();
      const Status sent = send_async(*std::move(from), handler, queue);
      if (!sent.ok()) {
        handler->release(handler);
        return sent.error().code();
      }
      while (queue.run_ready()) {
      }
      Result<DeviceArrayStream> stream = std::move(*reader).open();
      while (queue.run_ready()) {
      }
      if (!stream.ok()) return stream.error().code();
      StreamReader<ArrowDeviceArrayStream> to(*std::move(stream));
      int code = 0;
      for (int i = 0; i < 3 && code == 0; ++i) {
        const std::optional<Result<DeviceArray>> batch = to.next();
        if (batch) code = code_of(*batch);
        while (queue.run_ready()) {
        }
      }
      to.release();
      while (queue.run_ready()) {
      }
      return code;
    });
    EXPECT_EQ(code, inject.fired() ? ENOMEM : 0);
    EXPECT_EQ(ledger.live(), 0);
  });
  EXPECT_GT(failed, 10);
}

}  // namespace
}  // namespace fletching::testing
