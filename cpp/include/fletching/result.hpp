// SPDX-License-Identifier: Apache-2.0
//
// What a function returns that can fail: a value, or an errno value with a message.
#ifndef FLETCHING_RESULT_HPP
#define FLETCHING_RESULT_HPP

#if __cplusplus < 202002L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 202002L)
#error "fletching: the C++ standard is too old: expected C++20 or later"
#endif

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "fletching/version.h"

// An error is rare, and the code for its message is long: it is kept out of line.
#if defined(__GNUC__)
#define FLETCHING_DETAIL_COLD [[gnu::cold, gnu::noinline]]
#else
#define FLETCHING_DETAIL_COLD
#endif

// A function with a static variable: each shared library has its own. Without this the dynamic
// linker merges them over the whole process, RTLD_LOCAL or not.
#if defined(__GNUC__) && !defined(_WIN32)
#define FLETCHING_DETAIL_LOCAL [[gnu::visibility("hidden")]]
#else
#define FLETCHING_DETAIL_LOCAL
#endif

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// Why something did not work.
class Error {
 public:
  /// `code` is an errno value; what is not positive becomes EIO, because 0 would read as success.
  Error(int code, std::string message) noexcept
      : code_(code > 0 ? code : EIO), message_(std::move(message)) {}

  [[nodiscard]] int code() const noexcept { return code_; }

  /// UTF-8, one sentence that names what was wrong and how to fix it. May be empty.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }

 private:
  int code_;
  std::string message_;
};

namespace detail {

[[noreturn]] FLETCHING_DETAIL_COLD inline void raise(const Error& error) {
#if defined(__cpp_exceptions)
  throw std::system_error(error.code(), std::generic_category(), error.message());
#else
  std::fprintf(stderr, "fletching: %s\n", error.message().c_str());
  std::abort();
#endif
}

/// Values that are themselves asked with `if`: a bool, an optional, or what a type declares by a
/// member `is_tested`.
template <class T>
inline constexpr bool kIsTested = std::is_same_v<T, bool> || requires { typename T::is_tested; };
template <class T>
inline constexpr bool kIsTested<std::optional<T>> = true;

}  // namespace detail

/// A value of type T, or an Error. T may be void.
///
/// `if (result)` means result.ok(). It does not compile for a bool, an optional or ArrayFindings,
/// where it reads as a question about the value: ask in two steps.
///
///     const Result<bool> ready = event.ready();
///     if (!ready.ok()) return ready.error();
///     if (*ready) read(buffers);
///
/// Functions that return one do not throw: memory that runs out is the error ENOMEM.
template <class T>
class [[nodiscard]] Result {
  // A union, because std::variant compiles four times as long, in every translation unit.
  static constexpr bool kMoves = std::is_nothrow_move_constructible_v<T>;

 public:
  using value_type = T;

  Result(T content) noexcept(kMoves) : value_(std::move(content)), ok_(true) {}
  Result(Error error) noexcept : error_(std::move(error)), ok_(false) {}

  /// A value made in place: T(arguments...).
  template <class... Arguments>
  explicit Result(std::in_place_t /*tag*/, Arguments&&... arguments) noexcept(
      std::is_nothrow_constructible_v<T, Arguments...>)
      : value_(std::forward<Arguments>(arguments)...), ok_(true) {}

  Result(const Result& other)
    requires std::is_copy_constructible_v<T>
      : ok_(other.ok_) {
    fill(other);
  }
  Result(Result&& other) noexcept(kMoves) : ok_(other.ok_) { fill(std::move(other)); }

  Result& operator=(const Result& other)
    requires std::is_copy_constructible_v<T>
  {
    return *this = Result(other);
  }
  /// What was there is destroyed last: `other` may be part of it.
  Result& operator=(Result&& other) noexcept {
    static_assert(kMoves, "an assignment that fails halfway would leave neither value nor error");
    if (this == &other) return *this;
    const Result last(std::move(*this));
    clear();
    ok_ = other.ok_;
    fill(std::move(other));
    return *this;
  }
  ~Result() { clear(); }

  /// Whether there is a value.
  [[nodiscard]] bool ok() const noexcept { return ok_; }
  explicit operator bool() const noexcept
    requires(!detail::kIsTested<T>)
  {
    return ok();
  }

  /// The value. Throws std::system_error with the error's code and text when there is none; where
  /// exceptions are off, prints the text and ends the program.
  T& value() & { return checked(), **this; }
  const T& value() const& { return checked(), **this; }
  T&& value() && { return checked(), *std::move(*this); }

  /// The value; there has to be one.
  T& operator*() & noexcept { return known(), value_; }
  const T& operator*() const& noexcept { return known(), value_; }
  T&& operator*() && noexcept { return known(), std::move(value_); }
  T* operator->() noexcept { return &**this; }
  const T* operator->() const noexcept { return &**this; }

  /// The error; there has to be one.
  [[nodiscard]] const Error& error() const& noexcept { return error_; }
  [[nodiscard]] Error&& error() && noexcept { return std::move(error_); }

 private:
  void checked() const {
    if (!ok_) detail::raise(error_);
  }

  // Lets a compiler leave out the check that the caller has made.
  void known() const noexcept {
#if defined(__GNUC__)
    if (!ok_) __builtin_unreachable();
#endif
  }

  // Of two that hold the same: ok_ says what.
  template <class Other>
  void fill(Other&& other) noexcept(kMoves && std::is_rvalue_reference_v<Other&&>) {
    if (ok_) {
      new (static_cast<void*>(&value_)) T(std::forward<Other>(other).value_);
    } else {
      new (static_cast<void*>(&error_)) Error(std::forward<Other>(other).error_);
    }
  }

  void clear() noexcept { ok_ ? value_.~T() : error_.~Error(); }

  union {
    T value_;
    Error error_;
  };
  bool ok_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() noexcept : content_(Nothing()) {}
  Result(Error error) noexcept : content_(std::move(error)) {}

  [[nodiscard]] bool ok() const noexcept { return content_.ok(); }
  explicit operator bool() const noexcept { return ok(); }

  /// Throws std::system_error when there is an error; where exceptions are off, prints its text and
  /// ends the program.
  void value() const { content_.value(); }

  [[nodiscard]] const Error& error() const& noexcept { return content_.error(); }
  [[nodiscard]] Error&& error() && noexcept { return std::move(content_).error(); }

 private:
  struct Nothing {};

  Result<Nothing> content_;
};

/// Success, or an Error.
using Status = Result<void>;

namespace detail {

FLETCHING_DETAIL_COLD inline Error out_of_memory() noexcept { return {ENOMEM, "out of memory"}; }

/// The running exception as an Error. Its text is left out when there is no memory for it.
FLETCHING_DETAIL_COLD inline Error current_error() noexcept {
#if defined(__cpp_exceptions)
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::system_error& error) {
    const bool is_errno = error.code().category() == std::generic_category();
    try {
      return {is_errno ? error.code().value() : EIO, error.what()};
    } catch (...) {
      return out_of_memory();
    }
  } catch (const std::exception& error) {
    try {
      return {EIO, error.what()};
    } catch (...) {
      return out_of_memory();
    }
  } catch (...) {
    return {EIO, "not a standard exception"};  // it has no text
  }
#else
  std::terminate();
#endif
}

/// Runs `body`; what it throws becomes what `failed` returns. The one place that catches: without
/// exceptions an allocation that fails ends the program (README.md, "Without exceptions").
template <class Body, class Failed>
std::invoke_result_t<Body> attempt(Body&& body, [[maybe_unused]] Failed failed) noexcept {
#if defined(__cpp_exceptions)
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    return failed();
  }
#else
  return std::forward<Body>(body)();
#endif
}

/// An Error whose text is left out when there is no memory for it.
inline Error plain_error(int code, std::string_view text) noexcept {
  return attempt([&] { return Error{code, std::string(text)}; },
                 [&] { return Error{code, std::string()}; });
}

/// Runs `body`, which returns a Result, and makes an Error of what it throws.
template <class Body>
std::invoke_result_t<Body> guarded(Body&& body) noexcept {
  return attempt(std::forward<Body>(body), &current_error);
}

/// An Error with the text that `text()` puts together, or ENOMEM when there is no memory for it.
template <class Text>
FLETCHING_DETAIL_COLD Error error_with(int code, Text&& text) noexcept {
  return attempt([&] { return Error{code, std::forward<Text>(text)()}; }, &current_error);
}

}  // namespace detail
}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_RESULT_HPP
