// SPDX-License-Identifier: Apache-2.0
//
// Records of a validated async stream.
#ifndef FLETCHING_SRC_VALIDATE_ASYNC_STREAM_HPP
#define FLETCHING_SRC_VALIDATE_ASYNC_STREAM_HPP

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "async_protocol.hpp"
#include "fletching/abi.h"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "hooks.hpp"
#include "members.hpp"
#include "record.hpp"

namespace fletching::validate {

struct Controls;

struct AsyncStream : Record {
  ArrowAsyncDeviceStreamHandler outer{};           // for the producer
  ArrowAsyncDeviceStreamHandler* inner = nullptr;  // the consumer's
  ArrowAsyncDeviceStreamHandler given{};           // copy of *inner at the time of wrapping
  ArrowSchema lent{};                              // lent during on_schema
  Controls* controls = nullptr;
  std::array<std::atomic<std::int64_t>, 10> calls{};  // indexed by Call
  std::atomic<ArrowAsyncProducer*> producer = nullptr;
  std::atomic<ArrowDeviceType> device_type = 0;
  std::string producer_metadata;  // with the stress option; written before the first handler call

  std::mutex mutex;  // protects the members below; not held during callbacks
  AsyncProtocol protocol;
  std::shared_ptr<const Schema> formats;  // at level SHAPE

  template <class Use>
  auto with_protocol(const Use& use) noexcept {
    const std::scoped_lock lock(mutex);
    return use(protocol);
  }
};

/// Producer object for the consumer.
struct Controls : Record {
  std::shared_ptr<AsyncStream> stream;
  ArrowAsyncProducer shown{};
};

struct Task : Record {
  std::shared_ptr<AsyncStream> stream;
  std::int64_t index = 0;
  ArrowAsyncTask inner{};
  ArrowAsyncTask shown{};
  Filled<ArrowDeviceArray, 1> array;  // extracted once
  std::atomic<bool> is_lent = true;   // on_next_task has not returned
  std::atomic<bool> is_refused = false;
};

/// Scope of a stream's call on this thread.
class Inside {
 public:
  Inside(const AsyncStream* stream, Call call) noexcept : stream_(stream), call_(call) {
    innermost_ = this;
  }
  ~Inside() { innermost_ = outer_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  /// Returns the stream's innermost call on this thread.
  static Call of(const AsyncStream* stream) noexcept {
    const Inside* inside = innermost_;
    while (inside != nullptr && inside->stream_ != stream) inside = inside->outer_;
    return inside == nullptr ? Call::kNone : inside->call_;
  }

 private:
  const AsyncStream* stream_;
  Call call_;
  const Inside* outer_ = innermost_;
  FLETCHING_DETAIL_LOCAL static inline thread_local const Inside* innermost_ = nullptr;
};

constexpr const char* name_of(Call call) noexcept {
  switch (call) {
    case Call::kSchema:
      return "on_schema";
    case Call::kTask:
    case Call::kEnd:
      return "on_next_task";
    case Call::kError:
      return "on_error";
    case Call::kRequest:
      return "request";
    case Call::kCancel:
    case Call::kLateCancel:
      return "cancel";
    case Call::kExtract:
      return "extract_data";
    default:
      return "release";
  }
}

constexpr Path path_of(Call call, std::int64_t index, const char* member = "") noexcept {
  return {name_of(call), call == Call::kRelease ? -1 : index, member};
}

inline std::int64_t next_index(AsyncStream& stream, Call call) noexcept {
  const Call counter = call == Call::kEnd          ? Call::kTask
                       : call == Call::kLateCancel ? Call::kCancel
                                                   : call;
  return stream.calls[static_cast<std::size_t>(counter)]++;
}

inline void report(AsyncStream& stream, const Verdict& verdict, Call call,
                   std::int64_t index) noexcept {
  for (const Verdict::Broken& broken : verdict) {
    stream.report(broken.rule, path_of(call, index), broken.message, broken.party);
  }
}

inline void check_code(AsyncStream& stream, Rule rule, int code, const Path& path) noexcept {
  if (is_errno(code)) return;
  stream.report(rule, path, text_or_empty([&] { return errno_message(code); }).c_str());
}

// Hooks of the consumer's calls.

int extract_data(ArrowAsyncTask* self, ArrowDeviceArray* out) noexcept;
void request(ArrowAsyncProducer* self, std::int64_t n) noexcept;
void cancel(ArrowAsyncProducer* self) noexcept;

}  // namespace fletching::validate

#endif  // FLETCHING_SRC_VALIDATE_ASYNC_STREAM_HPP
