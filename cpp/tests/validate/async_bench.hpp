// SPDX-License-Identifier: Apache-2.0
//
// A foreign producer and a foreign consumer with the validation layer between them.
#ifndef FLETCHING_TESTS_VALIDATE_ASYNC_BENCH_HPP
#define FLETCHING_TESTS_VALIDATE_ASYNC_BENCH_HPP

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "../async_support.hpp"
#include "findings.hpp"
#include "fletching/validate.h"

namespace fletching::testing {

/// Both sides run on the calling thread. The end of a script closes the stream.
struct AsyncBench {
  using Handler = ArrowAsyncDeviceStreamHandler;
  using Script = std::function<void(AsyncBench&)>;

  static Findings run(const Script& script, const Script& prepare = nullptr,
                      std::int32_t level = FLETCHING_VALIDATE_PROTOCOL) {
    AsyncBench bench;
    current_ = &bench;
    if (prepare) prepare(bench);
    bench.wrap(level);
    if (script) script(bench);
    bench.close();
    return bench.findings;
  }
  /// For callbacks without a context.
  static AsyncBench& current() { return *current_; }

  void wrap(std::int32_t level) {
    const FletchingValidateOptions options = findings.options(level);
    wrapped = &consumer.raw;
    ASSERT_EQ(FletchingValidateAsyncHandler(&wrapped, &options, nullptr), 0);
    wrapped->producer = &producer.raw;
    producer.handler = wrapped;
  }

  /// Calls on_schema, then makes a request unless n is 0.
  void start(std::int64_t n = 9) {
    is_over = producer.give_schema() != 0;
    if (n != 0) consumer.request(n);
  }
  void task(int result = 0, const char* metadata = nullptr) {
    is_over = producer.give_task(result, metadata) != 0 || is_over;
  }
  /// Sends a task with another extraction function; private_data is the bench.
  void custom_task(int (*extract)(ArrowAsyncTask*, ArrowDeviceArray*)) {
    ArrowAsyncTask given{extract, this};
    is_over = wrapped->on_next_task(wrapped, &given, nullptr) != 0 || is_over;
  }
  int extract(std::size_t number = 0) {
    DeviceArray array;
    return consumer.extract(number, array.out());
  }
  int drop(std::size_t number = 0) { return consumer.extract(number, nullptr); }
  void cancel() {
    consumer.cancel();
    is_over = true;
  }
  void end() {
    (void)producer.end();
    is_over = true;
  }
  void fail(int code = EIO, const char* message = "it broke", const char* metadata = nullptr) {
    producer.fail(code, message, metadata);
    is_over = true;
  }
  void release() {
    producer.release();
    is_released = true;
  }

  void close() {
    consumer.inside = nullptr;
    for (std::size_t i = 0; i < (std::min)(consumer.tasks.size(), producer.tasks.size()); ++i) {
      if (producer.tasks[i]->extracted == 0) drop(i);
    }
    if (!is_over && !is_released) fail();
    if (!is_released) release();
    consumer.schema.release();
    EXPECT_EQ(producer.ledger.live(), 0);
  }

  Findings findings;
  PeerProducer producer;
  PeerHandler consumer;
  Handler* wrapped = nullptr;
  bool is_over = false;
  bool is_released = false;

 private:
  static inline AsyncBench* current_ = nullptr;
};

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_VALIDATE_ASYNC_BENCH_HPP
