// SPDX-License-Identifier: Apache-2.0
//
// Makes streams of arrays and of device arrays from a range or a callable.
#ifndef FLETCHING_STREAM_PRODUCER_HPP
#define FLETCHING_STREAM_PRODUCER_HPP

#include <cerrno>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "fletching/check_array.hpp"
#include "fletching/detail/text.hpp"
#include "fletching/options.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/shared.hpp"
#include "fletching/stream.hpp"
#include "fletching/tables.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

/// The result of one step of a stream: a batch or an error; empty at the end.
template <class Batch>
using Next = std::optional<Result<Batch>>;

/// The callbacks of a stream over a `Source` with Result<Schema> schema() and Next<Batch> next().
/// Both may throw.
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
    Result<Batch> batch = guarded([&] { return checked(source_.next()); });
    ended_ = batch.ok() && batch->is_released();
    const int code = hand_out(std::move(batch), out);
    if (code != 0) remember(code);
    if constexpr (std::is_same_v<RawBatch, ArrowDeviceArray>) {
      std::memset(out->reserved, 0, sizeof out->reserved);
    }
    return code;
  }

  /// Converts a step to the result of get_next, which returns a released array only at the end.
  Result<Batch> checked(Next<Batch> given) {
    if (!given) return Batch();
    if (!given->ok()) return *std::move(given);
    Batch& batch = **given;
    if (batch.is_released()) {
      return Error(
          EINVAL,
          "get_next: batch is released: expected a live batch, because a released one is the end");
    }
    Status status = check_batch(*batch, device_type_, options_);
    if (!status) return std::move(status).error();
    return *std::move(given);
  }

  /// Moves the value to *out, or stores the error for get_last_error.
  template <class T>
  int hand_out(Result<T> result, typename T::raw_type* out) noexcept {
    if (result.ok()) {
      if (!result->is_released()) move_struct(result->get(), out);
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

  /// A failed stream returns the same error and message again.
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
  std::string text_;                  // error of a failed get_schema
  const char* last_error_ = nullptr;  // the last call's error; NULL if it succeeded
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

/// Whether `T` is a batch or a Result of one.
template <class T, class Batch>
concept BatchOrResult = std::convertible_to<T, Result<Batch>>;

/// A callable without arguments that returns a batch, an error or an empty optional.
template <class F, class Batch>
concept BatchCallable =
    std::invocable<F&> && std::convertible_to<std::invoke_result_t<F&>, Next<Batch>>;

/// A range of movable batches or results.
template <class R, class Batch>
concept BatchRange =
    std::ranges::input_range<R> && BatchOrResult<std::ranges::range_rvalue_reference_t<R>, Batch>;

template <class Batch, class F>
struct CallableSource {
  SharedSchema shared;
  F callable;

  Result<Schema> schema() noexcept { return shared.view(); }
  Next<Batch> next() {
    if constexpr (BatchOrResult<std::invoke_result_t<F&>, Batch>) {
      // A released batch is the only way for this callable to signal the end.
      Result<Batch> batch = std::invoke(callable);
      if (batch.ok() && batch->is_released()) return std::nullopt;
      return batch;
    } else {
      return std::invoke(callable);
    }
  }
};

/// A range with a schema for its batches, such as a StreamReader.
template <class R>
concept HasSchema = requires(R& range) {
  { range.schema() } -> std::same_as<Result<Schema>>;
};

template <class Batch, class R>
struct RangeSource {
  SharedSchema shared;
  R range;
  std::optional<std::ranges::iterator_t<R>> place{};  // empty before the first batch

  Result<Schema> schema() noexcept { return shared.view(); }
  Next<Batch> next() {
    if (place) {
      ++*place;
    } else {
      if constexpr (HasSchema<R>) {
        Status same = check_source();
        if (!same) return std::move(same).error();
      }
      place.emplace(std::ranges::begin(range));
    }
    if (*place == std::ranges::end(range)) return std::nullopt;
    return std::ranges::iter_move(*place);
  }

 private:
  Status check_source() {
    Result<Schema> theirs = range.schema();
    if (!theirs) return std::move(theirs).error();
    return verify_same_types(**shared, **theirs);
  }
};

template <class Content, class Batch>
concept StreamContent = BatchCallable<Content, Batch> || BatchRange<Content, Batch>;

template <class T>
struct Element {
  using type = void;
};
template <std::ranges::range R>
struct Element<R> {
  using type = std::ranges::range_value_t<R>;
};
template <class T>
using ElementOf = typename Element<T>::type;

/// Whether a stream can be made from `Content`, the type of a forwarding reference. If not, a
/// static_assert names the missing requirement.
template <class Content, class Batch>
consteval bool is_stream_content() {
  using Stored = std::remove_cvref_t<Content>;
  constexpr bool kIsCallable = std::invocable<Stored&>;
  constexpr bool kIsRange = !kIsCallable && std::ranges::input_range<Stored>;
  static_assert(kIsCallable || kIsRange,
                "stream content: expected a callable without arguments, or an input range");
  static_assert(!kIsCallable || BatchCallable<Stored, Batch>,
                "stream content: the callable returns another type: expected DeviceArray (Array "
                "for an array stream), a Result of it, or a std::optional of such a Result");
  static_assert(!kIsRange || BatchRange<Stored, Batch>,
                "stream content: the elements are of another type, or const: expected a range of "
                "DeviceArray (Array for an array stream), or of a Result of it");
  // std::vector is copy-constructible according to its traits, even if its elements are not.
  constexpr bool kIsMoved = std::is_same_v<Content, Stored>;
  constexpr bool kCopiesBatches = kIsRange && !kIsMoved && !std::ranges::view<Stored> &&
                                  !std::copy_constructible<ElementOf<Stored>>;
  static_assert(!kCopiesBatches,
                "stream content: the range is an lvalue or const, and batches cannot be copied: "
                "expected an rvalue; hint: std::move it in");
  constexpr bool kIsStored = kCopiesBatches || std::constructible_from<Stored, Content>;
  static_assert(kIsStored,
                "stream content: cannot be moved or copied into the stream: expected a type that "
                "can be moved; hint: std::move it in");
  return StreamContent<Stored, Batch> && !kCopiesBatches && kIsStored;
}

template <class Raw, class Content>
Result<Owner<Raw>> make_stream(Schema schema, ArrowDeviceType device_type, Content&& content,
                               Options options) noexcept {
  using Stored = std::remove_cvref_t<Content>;
  using Batch = typename StreamTraits<Raw>::Batch;
  using Source = std::conditional_t<BatchCallable<Stored, Batch>, CallableSource<Batch, Stored>,
                                    RangeSource<Batch, Stored>>;
  return guarded([&]() -> Result<Owner<Raw>> {
    Stored stored(std::forward<Content>(content));
    if (device_type == 0) {
      return broken_rule(
          "device-stream.device-type-set",
          "make_device_stream: device_type: 0: expected the device type of the batches");
    }
    if (schema.is_released())
      return Error(EINVAL, "stream: schema is released: expected a live schema");
    Result<SharedSchema> shared = share(std::move(schema));
    if (!shared) return std::move(shared).error();
    return export_stream<Raw>(Source{*std::move(shared), std::move(stored)}, device_type,
                              std::move(options));
  });
}

}  // namespace detail

/// Makes a device stream of `schema`, on devices of `device_type`, from the batches in `content`:
///
/// - a range of DeviceArray or Result<DeviceArray>. Its elements are moved out one by one. Move the
///   range in unless it is a view: the stream owns it. A StreamReader is also a range; its types
///   are compared with `schema` (verify_same_types) before the first batch.
/// - a callable that returns std::optional<Result<DeviceArray>>. An empty optional is the end of
///   the stream, after which the callable is not called again. A callable may also return
///   DeviceArray or Result<DeviceArray>, with a released array as the end.
///
/// Only get_next uses `content`, on the thread that calls it, one thread at a time.
///
/// get_next returns the errors and exceptions of `content` as errno values: a std::system_error's
/// code in the generic category, ENOMEM for std::bad_alloc, EIO for other exceptions.
/// get_last_error returns their message as UTF-8. After an error get_next returns the same error
/// again. A batch on a device that the devices of `device_type` cannot access is an error too; see
/// StreamReader and Options. A released array that is not the end is EINVAL.
///
/// Ownership: `schema` and `content` are moved in (or copied), also on error. The stream owns both
/// and destroys them when it is released. Returned batches and schemas outlive the stream.
///
/// Errors of this function: EINVAL if `schema` is released or `device_type` is 0; ENOMEM;
/// exceptions of a copy of `content`. An unsuitable `content` does not compile.
///
/// Source: C device stream interface.
template <class Content>
Result<DeviceArrayStream> make_device_stream(Schema schema, ArrowDeviceType device_type,
                                             Content&& content, Options options = {}) noexcept {
  if constexpr (detail::is_stream_content<Content, DeviceArray>()) {
    return detail::make_stream<ArrowDeviceArrayStream>(
        std::move(schema), device_type, std::forward<Content>(content), std::move(options));
  }
}

/// Like make_device_stream, for a stream of Array or Result<Array> on the CPU. Source: C stream
/// interface.
template <class Content>
Result<ArrayStream> make_array_stream(Schema schema, Content&& content) noexcept {
  if constexpr (detail::is_stream_content<Content, Array>()) {
    return detail::make_stream<ArrowArrayStream>(std::move(schema), ARROW_DEVICE_CPU,
                                                 std::forward<Content>(content), {});
  }
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_STREAM_PRODUCER_HPP
