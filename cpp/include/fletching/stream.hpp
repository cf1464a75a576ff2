// SPDX-License-Identifier: Apache-2.0
//
// Reads streams of arrays and of device arrays as a range of results.
#ifndef FLETCHING_STREAM_HPP
#define FLETCHING_STREAM_HPP

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/check_array.hpp"
#include "fletching/detail/text.hpp"
#include "fletching/options.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/tables.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

/// The differences between the two interfaces.
template <class Raw>
struct StreamTraits;

template <>
struct StreamTraits<ArrowArrayStream> {
  using Batch = Array;
  static constexpr std::string_view kName = "ArrowArrayStream";
  static constexpr std::string_view kCallbacksSet = "stream.callbacks-set";
  static constexpr std::string_view kSchemaConstant = "stream-result.schema-constant";
  static ArrowDeviceType device_type(const ArrayStream& /*stream*/) noexcept {
    return ARROW_DEVICE_CPU;
  }
};

template <>
struct StreamTraits<ArrowDeviceArrayStream> {
  using Batch = DeviceArray;
  static constexpr std::string_view kName = "ArrowDeviceArrayStream";
  static constexpr std::string_view kCallbacksSet = "device-stream.callbacks-set";
  static constexpr std::string_view kSchemaConstant = "device-stream-result.schema-constant";
  static ArrowDeviceType device_type(const DeviceArrayStream& stream) noexcept {
    return stream.device_type();
  }
};

/// Whether every device that can access memory of type `promised` can also access memory of type
/// `given`.
constexpr bool stands_in_for(ArrowDeviceType given, ArrowDeviceType promised) noexcept {
  bool known = false;
  for (const DeviceAccess& access : kDeviceAccess) {
    if (access.memory != promised) continue;
    known = true;
    if (!is_accessible(given, access.device)) return false;
  }
  return known;
}

/// Checks that a batch may be in a stream of a device type.
inline Status check_batch(const ArrowArray& /*batch*/, ArrowDeviceType /*promised*/,
                          const Options& /*options*/) noexcept {
  return {};
}
inline Status check_batch(const ArrowDeviceArray& batch, ArrowDeviceType promised,
                          const Options& options) noexcept {
  if (promised == 0) {
    return guarded([]() -> Status {
      return broken_rule(
          "device-stream.device-type-set",
          "ArrowDeviceArrayStream.device_type: 0: expected a device type; hint: fix the producer");
    });
  }
  if (batch.device_type != promised) {
    const auto text = [&] {
      return "batch: device_type differs from the stream's: expected " + device_name(promised) +
             ", got " + device_name(batch.device_type);
    };
    if (!stands_in_for(batch.device_type, promised)) {
      return guarded([&]() -> Status {
        return broken_rule("device-stream-result.accessible",
                           text() + ", memory that the stream's devices may not access");
      });
    }
    Status status = warn(options, "device-stream.one-device-type", text);
    if (!status) return status;
  }
  const bool zero = std::ranges::all_of(batch.reserved, [](auto word) { return word == 0; });
  if (zero) return {};
  return warn(options, "device-array.reserved-zero", [] {
    return std::string(
        "ArrowDeviceArray.reserved: not zero: expected zeros; hint: fix the producer");
  });
}

}  // namespace detail

/// Reads a stream. `Raw` is ArrowArrayStream or ArrowDeviceArrayStream; a batch is an Array or a
/// DeviceArray.
///
/// A std::ranges::input_range of Result<batch_type>&, for one iteration:
///
///     for (Result<DeviceArray>& batch : reader) {
///       if (!batch) return batch.error();
///       use(std::move(*batch));
///     }
///
/// or batch by batch:
///
///     while (std::optional<Result<DeviceArray>> batch = reader.next()) {
///       if (!batch->ok()) return batch->error();
///       use(**std::move(batch));
///     }
///
/// Both loops end at the end of the stream, or after one element with an error. After an error,
/// schema() returns that error, and the stream is not called again. An error of schema() is also
/// the next element, so that it does not look like the end of the stream.
///
/// Ownership: the reader owns the stream and releases it. The caller owns schemas and batches,
/// which may outlive the reader. Moving the reader invalidates its iterators.
///
/// Errors: the errno value that the stream returned, with the message from get_last_error. A value
/// that is not positive becomes EIO, and the message ends with "(code N)". Bytes that are not UTF-8
/// or printable are escaped as "\xNN", and the message is truncated to 4096 bytes. EINVAL, with the
/// rule's id, for a stream that violates a rule: a NULL callback, or a batch on a device type that
/// the stream's device type does not allow (device-stream-result.accessible). ENOMEM. In strict
/// mode the first schema is kept: a batch that does not match it (check_array) and a later schema
/// of other types (verify_same_types) are EINVAL too.
///
/// Warnings (see Options): `device-stream.one-device-type` for a batch of another device type, if
/// every device that can access the stream's memory can access the batch;
/// `device-array.reserved-zero`.
///
/// Threads: one at a time, because streams are not thread-safe. Schemas and batches may be released
/// on other threads.
///
/// Source: C stream interface, C device stream interface.
template <class Raw>
class StreamReader {
 public:
  using batch_type = typename detail::StreamTraits<Raw>::Batch;

  class Iterator;

  /// Reads `stream`. Reading a released stream is an error.
  explicit StreamReader(Owner<Raw> stream, Options options = {}) noexcept
      : stream_(std::move(stream)), options_(std::move(options)) {
    detail::imported(*stream_);  // a producer may have filled the struct in the owner
  }

  /// The device type of the stream; 0 if it is released. ARROW_DEVICE_CPU for an ArrowArrayStream.
  [[nodiscard]] ArrowDeviceType device_type() const noexcept {
    return detail::StreamTraits<Raw>::device_type(stream_);
  }

  /// Returns the schema of all batches. May be called at any time and repeatedly.
  Result<Schema> schema() noexcept {
    return unless_dead<Schema>([&]() -> Result<Schema> {
      Status same = pull_expected();
      if (!same) return std::move(same).error();
      Result<Schema> schema = pull_schema();
      if (schema && options_.strict) {
        same = detail::check_same_schema(*expected_, **schema,
                                         detail::StreamTraits<Raw>::kSchemaConstant);
      }
      if (!same) return std::move(same).error();
      return schema;
    });
  }

  /// Returns the next batch, or the stream's error once. Empty after the error and at the end of
  /// the stream. A returned batch is never released.
  std::optional<Result<batch_type>> next() noexcept {
    if (ended_) return std::nullopt;
    std::optional<Result<batch_type>> batch(unless_dead<batch_type>([&] { return pull_batch(); }));
    ended_ = !batch->ok() || (*batch)->is_released();
    if (ended_ && batch->ok()) batch.reset();
    return batch;
  }

  /// Releases the stream early. Batches stay valid. Later reads are errors.
  void release() noexcept { stream_.release(); }

  /// Reads the next batch. The range continues after the last batch that was read.
  Iterator begin() noexcept {
    current_ = next();
    return Iterator(this);
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  template <class T, class Pull>
  Result<T> unless_dead(const Pull& pull) noexcept {
    if (!failure_) {
      Result<T> result = detail::guarded(pull);
      if (result.ok()) return result;
      failure_.emplace(std::move(result).error());
    }
    return detail::guarded([&]() -> Result<T> { return Error(*failure_); });
  }

  Result<Schema> pull_schema() {
    Schema schema;
    Status status = call("get_schema", stream_->get_schema, schema.out());
    if (!status) return std::move(status).error();
    if (schema.is_released()) {
      return Error(EINVAL,
                   "get_schema: released schema with return value 0: expected a live schema");
    }
    return schema;
  }

  Result<batch_type> pull_batch() {
    batch_type batch;
    Status status = pull_expected();
    if (status) status = call("get_next", stream_->get_next, batch.out());
    if (!status) return std::move(status).error();
    if (batch.is_released()) return batch;
    status = detail::check_batch(*batch.get(), device_type(), options_);
    if (status && options_.strict) {
      status =
          detail::check_schema(expected_, *batch.get(), detail::StreamTraits<Raw>::kSchemaConstant);
    }
    if (!status) return std::move(status).error();
    return batch;
  }

  Status pull_expected() {
    if (!options_.strict || !expected_.is_released()) return {};
    Result<Schema> schema = pull_schema();
    if (!schema) return std::move(schema).error();
    expected_ = *std::move(schema);
    return {};
  }

  template <class Callback, class Out>
  Status call(std::string_view name, Callback callback, Out* out) {
    if (stream_.is_released()) return Error(EINVAL, "stream: released: expected a live stream");
    if (callback == nullptr) return null_callback(name);
    const int code = callback(stream_.get(), out);
    if (code == 0) return {};
    // A failed call does not transfer ownership of *out.
    std::memset(out, 0, sizeof *out);
    // A callback that has released its stream leaves no text.
    return detail::foreign_error(code, stream_.is_released() ? nullptr : last_error());
  }

  static Error null_callback(std::string_view name) {
    std::string text(detail::StreamTraits<Raw>::kName);
    text.append(".").append(name).append(": NULL: expected a callback; hint: fix the producer");
    return detail::broken_rule(detail::StreamTraits<Raw>::kCallbacksSet, text);
  }

  const char* last_error() {
    return stream_->get_last_error == nullptr ? nullptr : stream_->get_last_error(stream_.get());
  }

  Owner<Raw> stream_;
  Options options_;
  std::optional<Error> failure_;
  Schema expected_;     // of every batch; in strict mode, after the first read
  bool ended_ = false;  // next() always returns empty
  std::optional<Result<batch_type>> current_;  // the iterator's element; empty at the end
};

/// Iterates over the batches. The reader stores the current one.
template <class Raw>
class StreamReader<Raw>::Iterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Result<batch_type>;
  using difference_type = std::ptrdiff_t;

  Iterator() noexcept = default;

  /// The batch or the error. The batch may be moved out.
  value_type& operator*() const noexcept { return *operator->(); }
  value_type* operator->() const noexcept {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): the end is not to be dereferenced
    return &*reader_->current_;
  }

  Iterator& operator++() noexcept {
    reader_->current_ = reader_->next();
    return *this;
  }
  void operator++(int) noexcept { ++*this; }

  bool operator==(std::default_sentinel_t /*end*/) const noexcept {
    return reader_ == nullptr || !reader_->current_.has_value();
  }

 private:
  friend class StreamReader;
  explicit Iterator(StreamReader* reader) noexcept : reader_(reader) {}

  StreamReader* reader_ = nullptr;
};

using ArrayStreamReader = StreamReader<ArrowArrayStream>;
using DeviceArrayStreamReader = StreamReader<ArrowDeviceArrayStream>;

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_STREAM_HPP
