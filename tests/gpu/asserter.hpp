// The comparisons of one check.
#ifndef FLETCHING_TESTS_GPU_ASSERTER_HPP
#define FLETCHING_TESTS_GPU_ASSERTER_HPP

#include <cerrno>
#include <cstdint>
#include <string>

#include "error.hpp"
#include "fletching/message.h"
#include "fletching/result.hpp"
#include "producer.h"

namespace fletching::gpu {

/// Counts the comparisons of one check, and throws at the first failure.
class Asserter {
 public:
  void require(bool condition, const std::string& what) {
    ++count_;
    if (!condition) fail(EBADMSG, what);
  }
  void require_success(const std::string& what, int code, const FletchingMessage& message) {
    require(code == 0, what + ": failed with errno " + std::to_string(code) + ": " + message.text);
  }
  /// Requires that the library's result is a success.
  template <class T>
  void require_success(const std::string& what, const Result<T>& result) {
    require(result.ok(), what + (result.ok() ? "" : " failed: " + result.error().message()));
  }
  void require_equal(const std::string& what, std::int64_t seen, std::int64_t expected) {
    require(seen == expected,
            what + " is " + std::to_string(seen) + ", expected " + std::to_string(expected));
  }
  /// Adds comparisons that were made elsewhere and succeeded. Their number must not be 0.
  void add(const std::string& what, std::int64_t compared) {
    require(compared > 0, what + " compared nothing");
    count_ += compared;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  std::int64_t count_ = 0;
};

/// Requires that every object of the producer was released exactly once.
inline void require_producer_at_rest(Asserter& asserter) {
  FletchingProducerCounters counters{};
  FletchingProducerReadCounters(&counters);
  asserter.require_equal("live_allocations", counters.live_allocations, 0);
  asserter.require_equal("live_schemas", counters.live_schemas, 0);
  asserter.require_equal("live_arrays", counters.live_arrays, 0);
  asserter.require_equal("live_streams", counters.live_streams, 0);
  asserter.require_equal("the producer's released", counters.released, counters.exported);
  asserter.require_equal("double_released", counters.double_released, 0);
}

}  // namespace fletching::gpu

#endif  // FLETCHING_TESTS_GPU_ASSERTER_HPP
