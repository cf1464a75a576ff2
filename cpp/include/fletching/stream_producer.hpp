// SPDX-License-Identifier: Apache-2.0
//
// Streams of arrays and of device arrays, made of a range or of a callable; and one kind of stream
// made of the other.
#ifndef FLETCHING_STREAM_PRODUCER_HPP
#define FLETCHING_STREAM_PRODUCER_HPP

#include <cerrno>
#include <concepts>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <utility>

#include "fletching/options.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/shared.hpp"
#include "fletching/stream.hpp"
#include "fletching/tables.hpp"
#include "fletching/text.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

/// The callbacks of a stream over a `Source`, which has Result<Schema> schema() and Result<Batch>
/// next(), a released batch being the end. Both may throw.
template <class Raw, class Source>
class StreamExport {
  using Batch = typename StreamTraits<Raw>::Batch;
  using RawBatch = typename Batch::raw_type;

 public:
  StreamExport(Source source, ArrowDeviceType device_type, Options options)
      : source_(std::move(source)), device_type_(device_type), options_(std::move(options)) {}

  static int get_schema(Raw* self, ArrowSchema* out) noexcept {
    return enter(self, out, [&](StreamExport& state) {
      return state.hand_out(guarded([&] { return state.source_.schema(); }), out);
    });
  }

  static int get_next(Raw* self, RawBatch* out) noexcept {
    return enter(self, out, [&](StreamExport& state) { return state.next(out); });
  }

  static const char* get_last_error(Raw* self) noexcept {
    return self == nullptr || self->private_data == nullptr ? nullptr : of(self).last_error_;
  }

  static void release(Raw* self) noexcept {
    if (self == nullptr || self->release == nullptr) return;
    const std::unique_ptr<StreamExport> state(&of(self));
    self->release = nullptr;
    self->private_data = nullptr;
  }

 private:
  static StreamExport& of(Raw* self) noexcept {
    return *static_cast<StreamExport*>(self->private_data);
  }

  template <class Out, class Body>
  static int enter(Raw* self, Out* out, const Body& body) noexcept {
    if (self == nullptr || self->private_data == nullptr || out == nullptr) return EINVAL;
    std::memset(out, 0, sizeof *out);
    of(self).last_error_ = nullptr;
    return body(of(self));
  }

  int next(RawBatch* out) noexcept {
    if (failed_ != 0) return fail_again();
    if (ended_) return 0;
    Result<Batch> batch = guarded([&]() -> Result<Batch> {
      Result<Batch> got = source_.next();
      if (!got || got->is_released()) return got;
      Status status = check_batch(*got->get(), device_type_, options_);
      if (!status) return std::move(status).error();
      return got;
    });
    ended_ = batch.ok() && batch->is_released();
    const int code = hand_out(std::move(batch), out);
    if (code != 0) remember(code);
    if constexpr (std::is_same_v<RawBatch, ArrowDeviceArray>) {
      std::memset(out->reserved, 0, sizeof out->reserved);
    }
    return code;
  }

  /// The value to *out, or the error to get_last_error.
  template <class T>
  int hand_out(Result<T> result, typename T::raw_type* out) noexcept {
    if (result.ok()) {
      if (!result->is_released()) result->move_to(out);
      return 0;
    }
    const Error& error = result.error();
    const Status kept = guarded([&]() -> Status {
      text_ = printable(std::string_view(error.message()));
      return {};
    });
    last_error_ = kept.ok() && !text_.empty() ? text_.c_str() : nullptr;
    return error.code();
  }

  /// A stream that has failed stays so, with the same words.
  void remember(int code) noexcept {
    failed_ = code;
    failure_text_ = last_error_ != nullptr ? std::move(text_) : std::string();
    last_error_ = failure_text_.empty() ? nullptr : failure_text_.c_str();
  }
  int fail_again() noexcept {
    last_error_ = failure_text_.empty() ? nullptr : failure_text_.c_str();
    return failed_;
  }

  Source source_;
  ArrowDeviceType device_type_;
  Options options_;
  bool ended_ = false;
  int failed_ = 0;
  std::string failure_text_;
  std::string text_;                  // of a get_schema that failed
  const char* last_error_ = nullptr;  // of the last call; NULL when it did not fail
};

template <class Raw, class Source>
Result<Owner<Raw>> export_stream(Source source, ArrowDeviceType device_type, Options options) {
  using Export = StreamExport<Raw, Source>;
  auto state = std::make_unique<Export>(std::move(source), device_type, std::move(options));
  Owner<Raw> stream;
  Raw* raw = stream.out();
  if constexpr (std::is_same_v<Raw, ArrowDeviceArrayStream>) raw->device_type = device_type;
  raw->get_schema = Export::get_schema;
  raw->get_next = Export::get_next;
  raw->get_last_error = Export::get_last_error;
  raw->private_data = state.release();
  raw->release = Export::release;
  return stream;
}

/// A callable that gives a batch, or an error, whenever it is called.
template <class F, class Batch>
concept BatchCallable =
    std::invocable<F&> && std::convertible_to<std::invoke_result_t<F&>, Result<Batch>>;

/// A range of batches, or of results.
template <class R, class Batch>
concept BatchRange = !BatchCallable<R, Batch> && std::ranges::input_range<R> &&
                     std::convertible_to<std::ranges::range_rvalue_reference_t<R>, Result<Batch>>;

template <class Batch, BatchCallable<Batch> F>
struct CallableSource {
  SharedSchema shared;
  F callable;

  Result<Schema> schema() noexcept { return shared.view(); }
  Result<Batch> next() { return std::invoke(callable); }
};

template <class Batch, BatchRange<Batch> R>
struct RangeSource {
  SharedSchema shared;
  R range;
  std::optional<std::ranges::iterator_t<R>> place{};  // none before the first batch

  Result<Schema> schema() noexcept { return shared.view(); }
  Result<Batch> next() {
    if (place) {
      ++*place;
    } else {
      place.emplace(std::ranges::begin(range));
    }
    if (*place == std::ranges::end(range)) return Batch();
    Result<Batch> batch = std::ranges::iter_move(*place);
    if (batch.ok() && batch->is_released()) {
      return Error(EINVAL, "the range has a released array, which would read as the end");
    }
    return batch;
  }
};

template <class Raw, class Content>
Result<Owner<Raw>> make_stream(Schema schema, ArrowDeviceType device_type, Content content,
                               Options options) noexcept {
  using Batch = typename StreamTraits<Raw>::Batch;
  return guarded([&]() -> Result<Owner<Raw>> {
    if (schema.is_released()) return Error(EINVAL, "the schema of the stream is released");
    Result<SharedSchema> shared = share(std::move(schema));
    if (!shared) return std::move(shared).error();
    if constexpr (BatchCallable<Content, Batch>) {
      using Source = CallableSource<Batch, Content>;
      return export_stream<Raw>(Source{*std::move(shared), std::move(content)}, device_type,
                                std::move(options));
    } else {
      using Source = RangeSource<Batch, Content>;
      return export_stream<Raw>(Source{*std::move(shared), std::move(content)}, device_type,
                                std::move(options));
    }
  });
}

template <class Content, class Batch>
concept StreamContent = std::move_constructible<Content> &&
                        (BatchCallable<Content, Batch> || BatchRange<Content, Batch>);

}  // namespace detail

/// A device stream of `schema`, on devices of `device_type`, whose batches `content` gives:
///
/// - a range of DeviceArray or Result<DeviceArray>: its elements, moved out one by one. A range
/// that
///   is no view is owned by the stream, so move it in. A StreamReader is such a range.
/// - a callable that returns DeviceArray or Result<DeviceArray>: what it returns, until a released
///   array, which is the end; after that it is not called again.
///
/// `content` is used by one thread at a time, the one that calls get_next, and only when it does.
///
/// Errors of `content`, and what it throws, are what get_next returns and get_last_error says: the
/// errno value (that of a std::system_error in the generic category, ENOMEM for std::bad_alloc, EIO
/// for what has none) and the text, as UTF-8. After an error get_next returns it again and again.
/// So does a batch on a device that cannot stand in for `device_type`; see StreamReader and
/// Options.
///
/// Ownership: the stream owns `schema` and `content` and destroys them when it is released. Batches
/// and schemas that it gave live on.
///
/// Errors of this function: EINVAL when `schema` is released or `device_type` is 0; ENOMEM.
///
/// Text: C device stream interface.
template <detail::StreamContent<DeviceArray> Content>
Result<DeviceArrayStream> make_device_stream(Schema schema, ArrowDeviceType device_type,
                                             Content content, Options options = {}) noexcept {
  if (device_type == 0) {
    return detail::guarded([]() -> Result<DeviceArrayStream> {
      return detail::broken_rule("device-stream.device-type-set",
                                 "0 is no device type: say where the arrays are");
    });
  }
  return detail::make_stream<ArrowDeviceArrayStream>(std::move(schema), device_type,
                                                     std::move(content), std::move(options));
}

/// The same on the CPU, of Array or Result<Array>. Text: C stream interface.
template <detail::StreamContent<Array> Content>
Result<ArrayStream> make_array_stream(Schema schema, Content content) noexcept {
  return detail::make_stream<ArrowArrayStream>(std::move(schema), ARROW_DEVICE_CPU,
                                               std::move(content), {});
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_STREAM_PRODUCER_HPP
