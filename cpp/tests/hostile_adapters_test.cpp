// SPDX-License-Identifier: Apache-2.0
//
// The adapters between async and device streams with the hostile peer at one end: its async
// producers read as device streams, its streams sent to an async consumer, and a good stream sent
// to its handlers.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fletching/async_adapters.hpp"
#include "fletching/executor.hpp"
#include "fletching/owner.hpp"
#include "fletching/stream.hpp"
#include "hostile.hpp"

namespace fletching::testing {
namespace {

constexpr std::int64_t kBatches = 3;

struct Outcome {
  std::optional<Error> error;
  int batches = 0;
};

/// Everything that the stream returns is kept until it is released.
Outcome read_all(Result<DeviceArrayStream> stream) {
  if (!stream.ok()) return {stream.error()};
  DeviceArrayStreamReader reader(*std::move(stream));
  const Result<Schema> schema = reader.schema();
  if (!schema) return {schema.error()};
  std::vector<DeviceArray> batches;
  for (Result<DeviceArray>& batch : reader) {
    if (!batch) return {batch.error(), static_cast<int>(batches.size())};
    batches.push_back(*std::move(batch));
  }
  return {std::nullopt, static_cast<int>(batches.size())};
}

// --- Async producers of the peer, read as a device stream ---

Result<DeviceArrayStream> open_producer(const HostileCase& played, std::int64_t window) {
  Result<AsyncReader> reader = AsyncReader::create(window);
  EXPECT_TRUE(reader);
  EXPECT_EQ(FletchingHostileStartProducer(played.c_str(), reader->handler(), nullptr), 0);
  return std::move(*reader).open();
}

TEST(HostileAdapters, ProducersAreReadAsStreams) {
  for (const std::int64_t window : {1, 2, 16}) {
    for (const HostileCase& played : hostile_cases(kFletchingHostileProducer)) {
      if (played.outcome == kFletchingHostileStalled)
        continue;  // it would wait for ever: see below
      SCOPED_TRACE(played.name);
      const Outcome outcome = read_all(open_producer(played, window));
      check_outcome(played, outcome.error);
      if (played.outcome == kFletchingHostileAccepted) {
        EXPECT_EQ(outcome.batches, batches_of_producer(played));
      }
      finish(played);
    }
  }
}

// A stream that is released before its end cancels, also one that would wait forever.
TEST(HostileAdapters, ProducersOfUnreadStreams) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileProducer)) {
    SCOPED_TRACE(played.name);
    {
      const Result<DeviceArrayStream> unread = open_producer(played, 2);
    }
    finish(played);
  }
}

TEST(HostileAdapters, ProducersOfADestroyedReader) {
  for (const HostileCase& played : hostile_cases(kFletchingHostileProducer)) {
    SCOPED_TRACE(played.name);
    {
      Result<AsyncReader> reader = AsyncReader::create(2);
      ASSERT_TRUE(reader);
      ASSERT_EQ(FletchingHostileStartProducer(played.c_str(), reader->handler(), nullptr), 0);
    }
    finish(played);
  }
}

// --- Streams of the peer, sent to an async consumer ---

DeviceArrayStream open_stream(const char* name) {
  ArrowDeviceArrayStream raw;
  EXPECT_EQ(FletchingHostileExportDeviceStream(name, &raw, nullptr), 0);
  return DeviceArrayStream(&raw);
}

/// There and back: what is read in the end is what the stream has given.
Outcome send_and_read(const HostileCase& played, Executor& executor) {
  Result<AsyncReader> reader = AsyncReader::create(2);
  EXPECT_TRUE(reader);
  ArrowAsyncDeviceStreamHandler* handler = reader->handler();
  const Status sent = send_async(open_stream(played.c_str()), handler, executor);
  if (!sent.ok()) {
    handler->release(handler);  // no producer has it
    return {sent.error()};
  }
  return read_all(std::move(*reader).open());
}

void send_cases_of(std::int32_t party) {
  for (const HostileCase& played : hostile_cases(party)) {
    SCOPED_TRACE(played.name);
    {
      Result<std::unique_ptr<WorkerThread>> worker = WorkerThread::start();
      ASSERT_TRUE(worker);
      const Outcome outcome = send_and_read(played, **worker);
      check_outcome(played, outcome.error);
      if (!outcome.error) {
        EXPECT_EQ(outcome.batches, played.is("stream.empty") ? 0 : kBatches);
      }
    }  // the worker is destroyed when the handler is released
    finish(played);
  }
}

TEST(HostileAdapters, StreamsAreSent) { send_cases_of(kFletchingHostileStream); }

TEST(HostileAdapters, StreamsOfDevicesAreSent) { send_cases_of(kFletchingHostileDeviceStream); }

// --- A good stream, sent to handlers of the peer ---

TEST(HostileAdapters, AStreamIsSentToHandlersThatMisbehave) {
  Result<std::unique_ptr<WorkerThread>> worker = WorkerThread::start();
  ASSERT_TRUE(worker);
  for (const HostileCase& played : hostile_cases(kFletchingHostileHandler)) {
    SCOPED_TRACE(played.name);
    ArrowAsyncDeviceStreamHandler* handler = nullptr;
    ASSERT_EQ(FletchingHostileOpenHandler(played.c_str(), kBatches, &handler, nullptr), 0);
    const Status sent = send_async(open_stream("stream.good"), handler, **worker);
    const bool lacks_a_callback = played.name.find("-null") != std::string::npos;
    EXPECT_EQ(sent.ok(), !lacks_a_callback);
    if (!sent.ok() && handler->release != nullptr) handler->release(handler);
    finish(played);
  }
}

}  // namespace
}  // namespace fletching::testing
