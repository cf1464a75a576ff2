// SPDX-License-Identifier: Apache-2.0
//
// Pushes batches with an async producer on a worker thread, and reads them with blocking calls.
#include <iostream>
#include <memory>
#include <utility>

#include "fletching/array_builder.hpp"
#include "fletching/async_adapters.hpp"
#include "fletching/async_producer.hpp"
#include "fletching/executor.hpp"
#include "fletching/schema_builder.hpp"

using namespace fletching;

static Result<DeviceArray> batch_of(std::unique_ptr<double[]> values, std::int64_t length) {
  auto builder = build_array({.buffers = 2}, std::move(values));
  if (!builder) return std::move(builder).error();
  builder->set(builder->root(), {.length = length}, {nullptr, builder->object().get()});
  return builder->finish_cpu();
}

int main() try {  // value() throws if there is an error
  const std::unique_ptr<WorkerThread> worker = WorkerThread::start().value();
  AsyncReader consumer = AsyncReader::create(/*window=*/4).value();

  // The producer pushes freely to the consumer's handler. Batches are queued until the consumer
  // requests them.
  AsyncProducer producer = AsyncProducer::start(consumer.handler(), *worker).value();
  producer.schema(make_schema({.format = "g"}).value()).value();
  for (const int length : {1, 2, 3}) {
    producer.push(batch_of(std::make_unique<double[]>(length), length).value()).value();
  }
  producer.end().value();

  // The consumer's side: a blocking stream.
  DeviceArrayStreamReader reader(std::move(consumer).open().value());
  for (Result<DeviceArray>& batch : reader) {
    std::cout << "a batch of " << batch.value().length() << '\n';
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
