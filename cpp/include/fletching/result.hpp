// SPDX-License-Identifier: Apache-2.0
//
// Result of a function that can fail: a value, or an errno value with a message.
#ifndef FLETCHING_RESULT_HPP
#define FLETCHING_RESULT_HPP

#if __cplusplus < 202002L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 202002L)
#error "fletching: the C++ standard is too old: expected C++20 or later"
#endif

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "fletching/version.h"

// Errors are rare and the code for their messages is large, so it is kept out of line.
#if defined(__GNUC__)
#define FLETCHING_DETAIL_COLD [[gnu::cold, gnu::noinline]]
#else
#define FLETCHING_DETAIL_COLD
#endif

// For functions with a static variable: gives each shared library its own copy. Otherwise the
// dynamic linker merges them across the process, regardless of RTLD_LOCAL.
#if defined(__GNUC__) && !defined(_WIN32)
#define FLETCHING_DETAIL_LOCAL [[gnu::visibility("hidden")]]
#else
#define FLETCHING_DETAIL_LOCAL
#endif

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// An errno value with a message.
class Error {
 public:
  /// `code` is an errno value. Values below 1 become EIO, because 0 would mean success.
  Error(int code, std::string message) noexcept
      : code_(code > 0 ? code : EIO), message_(std::move(message)) {}

  [[nodiscard]] int code() const noexcept { return code_; }

  /// UTF-8, one sentence that names the problem and the fix. May be empty.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }

  bool operator==(const Error&) const = default;

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

/// Types whose values are themselves tested with `if`: bool, std::optional, and types with a member
/// `is_tested`.
template <class T>
inline constexpr bool kIsTested = std::is_same_v<T, bool> || requires { typename T::is_tested; };
template <class T>
inline constexpr bool kIsTested<std::optional<T>> = true;

}  // namespace detail

template <class T>
class Result;

namespace detail {

template <class T>
inline constexpr bool kIsResult = false;
template <class T>
inline constexpr bool kIsResult<Result<T>> = true;

/// A U that converts to the value of a Result<T>.
template <class U, class T>
concept MakesValue = std::is_constructible_v<T, U> && !kIsResult<std::remove_cvref_t<U>> &&
                     !std::is_same_v<std::remove_cvref_t<U>, std::in_place_t> &&
                     !std::is_same_v<std::remove_cvref_t<U>, Error>;

/// The class of a member pointer.
template <class Pointer>
struct ClassOfPointer;
template <class Member, class Class>
struct ClassOfPointer<Member Class::*> {
  using type = Class;
};
template <class Pointer>
using ClassOf = typename ClassOfPointer<Pointer>::type;

/// std::invoke for at most one argument. Its header, <functional>, takes a compiler two thirds as
/// long as the rest of this one.
template <class F>
constexpr decltype(auto) call(F&& f) {
  return std::forward<F>(f)();
}
template <class F, class T>
constexpr decltype(auto) call(F&& f, T&& value) {
  using Callable = std::remove_cvref_t<F>;
  if constexpr (!std::is_member_pointer_v<Callable>) {
    return std::forward<F>(f)(std::forward<T>(value));
  } else if constexpr (!std::is_base_of_v<ClassOf<Callable>, std::remove_cvref_t<T>>) {
    return call(f, *value);  // a pointer, also a smart one
  } else if constexpr (std::is_member_function_pointer_v<Callable>) {
    return (std::forward<T>(value).*f)();
  } else {
    return (std::forward<T>(value).*f);
  }
}

/// Calls `f` with the value of a result, or without arguments for a Result<void>.
template <class Self, class F>
decltype(auto) call_with_value(Self&& self, F&& f) {
  if constexpr (std::is_void_v<typename std::remove_cvref_t<Self>::value_type>) {
    return detail::call(std::forward<F>(f));
  } else {
    return detail::call(std::forward<F>(f), *std::forward<Self>(self));
  }
}

/// The members of Result that take a callable, as in C++23's std::expected.
template <class Self>
class ResultOperations {
 public:
  /// Returns `f(value)`, which is a Result, or the error.
  template <class F>
  auto and_then(F&& f) & {
    return chain(self(), std::forward<F>(f));
  }
  template <class F>
  auto and_then(F&& f) const& {
    return chain(self(), std::forward<F>(f));
  }
  template <class F>
  auto and_then(F&& f) && {
    return chain(std::move(*this).self(), std::forward<F>(f));
  }

  /// Returns a Result of `f(value)`, or the error.
  template <class F>
  auto transform(F&& f) & {
    return map(self(), std::forward<F>(f));
  }
  template <class F>
  auto transform(F&& f) const& {
    return map(self(), std::forward<F>(f));
  }
  template <class F>
  auto transform(F&& f) && {
    return map(std::move(*this).self(), std::forward<F>(f));
  }

  /// Returns this result if it has a value, else `f(error)`, which is a Result of the same type.
  template <class F>
  Self or_else(F&& f) & {
    if (self().has_value()) return self();
    return detail::call(std::forward<F>(f), self().error());
  }
  template <class F>
  Self or_else(F&& f) const& {
    if (self().has_value()) return self();
    return detail::call(std::forward<F>(f), self().error());
  }
  template <class F>
  Self or_else(F&& f) && {
    if (self().has_value()) return std::move(*this).self();
    return detail::call(std::forward<F>(f), std::move(*this).self().error());
  }

  /// Returns this result if it has a value, and otherwise the Error that `f(error)` returns.
  template <class F>
  Self transform_error(F&& f) & {
    if (self().has_value()) return self();
    return Error(detail::call(std::forward<F>(f), self().error()));
  }
  template <class F>
  Self transform_error(F&& f) const& {
    if (self().has_value()) return self();
    return Error(detail::call(std::forward<F>(f), self().error()));
  }
  template <class F>
  Self transform_error(F&& f) && {
    if (self().has_value()) return std::move(*this).self();
    return Error(detail::call(std::forward<F>(f), std::move(*this).self().error()));
  }

  /// Returns the error, or `other` for a value.
  template <class E>
  Error error_or(E&& other) const& {
    return self().has_value() ? Error(std::forward<E>(other)) : self().error();
  }
  template <class E>
  Error error_or(E&& other) && {
    return self().has_value() ? Error(std::forward<E>(other)) : std::move(*this).self().error();
  }

  void swap(Self& other) noexcept { std::swap(self(), other); }

 private:
  friend Self;
  ResultOperations() = default;

  Self& self() & noexcept { return static_cast<Self&>(*this); }
  const Self& self() const& noexcept { return static_cast<const Self&>(*this); }
  Self&& self() && noexcept { return static_cast<Self&&>(*this); }

  template <class Source, class F>
  static auto chain(Source&& source, F&& f) {
    using Next =
        std::remove_cvref_t<decltype(call_with_value(std::declval<Source>(), std::declval<F>()))>;
    if (!source.has_value()) return Next(std::forward<Source>(source).error());
    return Next(call_with_value(std::forward<Source>(source), std::forward<F>(f)));
  }

  template <class Source, class F>
  static auto map(Source&& source, F&& f) {
    using Value =
        std::remove_cvref_t<decltype(call_with_value(std::declval<Source>(), std::declval<F>()))>;
    if (!source.has_value()) return Result<Value>(std::forward<Source>(source).error());
    if constexpr (std::is_void_v<Value>) {
      call_with_value(std::forward<Source>(source), std::forward<F>(f));
      return Result<Value>();
    } else {
      return Result<Value>(std::in_place,
                           call_with_value(std::forward<Source>(source), std::forward<F>(f)));
    }
  }
};

}  // namespace detail

/// A value of type T, or an Error. T may be void.
///
/// Has the members of C++23's std::expected, except that value() throws std::system_error and an
/// Error converts without std::unexpected.
///
/// `if (result)` means result.has_value(). It does not compile for a temporary Result of a bool, an
/// optional or ArrayFindings, because it would look like a test of the value:
///
///     const Result<bool> ready = event.ready();
///     if (!ready) return ready.error();
///     if (*ready) read(buffers);
///
/// Functions of this library that return a Result do not throw. Out of memory is the error ENOMEM.
template <class T>
class [[nodiscard]] Result : public detail::ResultOperations<Result<T>> {
  // Uses a union, because std::variant compiles four times slower, in every translation unit.
  static constexpr bool kMoves = std::is_nothrow_move_constructible_v<T>;

 public:
  using value_type = T;
  using error_type = Error;

  /// Constructs the value T().
  Result() noexcept(std::is_nothrow_default_constructible_v<T>)
    requires std::default_initializable<T>
      : value_(), ok_(true) {}
  template <detail::MakesValue<T> U = T>
  explicit(!std::is_convertible_v<U, T>)
      Result(U&& content) noexcept(std::is_nothrow_constructible_v<T, U>)
      : value_(std::forward<U>(content)), ok_(true) {}
  /// Converts the value or copies the error of a Result of another type.
  template <class U>
    requires(std::is_constructible_v<T, U> && !std::is_same_v<T, U> && !std::is_same_v<T, bool>)
  explicit(!std::is_convertible_v<U, T>) Result(Result<U> other) : ok_(other.has_value()) {
    if (ok_) {
      new (static_cast<void*>(&value_)) T(*std::move(other));
    } else {
      new (static_cast<void*>(&error_)) Error(std::move(other).error());
    }
  }
  Result(Error error) noexcept : error_(std::move(error)), ok_(false) {}

  /// Constructs the value in place: T(arguments...).
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
  /// Destroys the previous content last, because it may contain `other`.
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

  /// Destroys the value or error, and constructs T(arguments...).
  template <class... Arguments>
    requires std::is_nothrow_constructible_v<T, Arguments...>
  T& emplace(Arguments&&... arguments) noexcept {
    clear();
    new (static_cast<void*>(&value_)) T(std::forward<Arguments>(arguments)...);
    ok_ = true;
    return value_;
  }

  /// Whether the result has a value.
  [[nodiscard]] bool has_value() const noexcept { return ok_; }
  [[nodiscard]] bool ok() const noexcept { return ok_; }
  explicit operator bool() const& noexcept { return ok_; }
  explicit operator bool() const&&
    requires(detail::kIsTested<T>)
  = delete;

  /// The value. Without a value, throws std::system_error with the error's code and message;
  /// without exceptions, prints the message and aborts. Do not call it where an exception must not
  /// propagate, such as in a C callback.
  T& value() & { return checked(), **this; }
  const T& value() const& { return checked(), **this; }
  T&& value() && { return checked(), *std::move(*this); }

  /// The value, or `other` without a value. Does not throw unless T's constructors do.
  template <class U>
  T value_or(U&& other) const& {
    return ok_ ? **this : static_cast<T>(std::forward<U>(other));
  }
  template <class U>
  T value_or(U&& other) && {
    return ok_ ? *std::move(*this) : static_cast<T>(std::forward<U>(other));
  }

  /// The value. Undefined behavior without a value.
  T& operator*() & noexcept { return known(), value_; }
  const T& operator*() const& noexcept { return known(), value_; }
  T&& operator*() && noexcept { return known(), std::move(value_); }
  T* operator->() noexcept { return &**this; }
  const T* operator->() const noexcept { return &**this; }

  /// The error. Undefined behavior without an error.
  [[nodiscard]] Error& error() & noexcept { return error_; }
  [[nodiscard]] const Error& error() const& noexcept { return error_; }
  [[nodiscard]] Error&& error() && noexcept { return std::move(error_); }

 private:
  void checked() const {
    if (!ok_) detail::raise(error_);
  }

  // Lets the compiler omit a check that the caller has already made.
  void known() const noexcept {
#if defined(__GNUC__)
    if (!ok_) __builtin_unreachable();
#endif
  }

  // Constructs the contents from `other`. Requires `other.ok_ == ok_`.
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
class [[nodiscard]] Result<void> : public detail::ResultOperations<Result<void>> {
 public:
  using value_type = void;
  using error_type = Error;

  Result() noexcept : content_(Nothing()) {}
  Result(Error error) noexcept : content_(std::move(error)) {}

  explicit Result(std::in_place_t /*tag*/) noexcept : Result() {}

  [[nodiscard]] bool has_value() const noexcept { return content_.ok(); }
  [[nodiscard]] bool ok() const noexcept { return content_.ok(); }
  explicit operator bool() const noexcept { return ok(); }

  /// Throws std::system_error if there is an error; without exceptions, prints its message and
  /// aborts.
  void value() const { content_.value(); }
  void operator*() const noexcept {}

  void emplace() noexcept { content_.emplace(); }

  [[nodiscard]] Error& error() & noexcept { return content_.error(); }
  [[nodiscard]] const Error& error() const& noexcept { return content_.error(); }
  [[nodiscard]] Error&& error() && noexcept { return std::move(content_).error(); }

 private:
  struct Nothing {};

  Result<Nothing> content_;
};

/// Equal values, or equal errors. Not friends: friends would be candidates, with their constraints
/// checked, wherever iterators of results are compared.
template <class T, class U>
  requires requires(const T& a, const U& b) { a == b; }
bool operator==(const Result<T>& a, const Result<U>& b) {
  if (a.has_value() && b.has_value()) return *a == *b;
  return a.has_value() == b.has_value() && a.error() == b.error();
}
template <class T, class U>
  requires(!detail::kIsResult<U>) && requires(const T& a, const U& b) { a == b; }
bool operator==(const Result<T>& a, const U& b) {
  return a.has_value() && *a == b;
}
template <class T>
bool operator==(const Result<T>& a, const Error& b) noexcept {
  return !a.has_value() && a.error() == b;
}
inline bool operator==(const Result<void>& a, const Result<void>& b) noexcept {
  if (a.has_value() && b.has_value()) return true;
  return a.has_value() == b.has_value() && a.error() == b.error();
}

/// Success, or an Error.
using Status = Result<void>;

namespace detail {

FLETCHING_DETAIL_COLD inline Error out_of_memory() noexcept { return {ENOMEM, "out of memory"}; }

#if defined(__cpp_exceptions)
FLETCHING_DETAIL_COLD inline Error exception_error(int code, const char* text) noexcept {
  try {
    return {code, text};
  } catch (...) {
    return out_of_memory();
  }
}
#endif

/// The current exception as an Error; see the table in README.md, "Errors".
FLETCHING_DETAIL_COLD inline Error current_error() noexcept {
#if defined(__cpp_exceptions)
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::system_error& error) {
    const std::error_condition condition = error.code().default_error_condition();
    return exception_error(
        condition.category() == std::generic_category() ? condition.value() : EIO, error.what());
  } catch (const std::invalid_argument& error) {
    return exception_error(EINVAL, error.what());
  } catch (const std::exception& error) {
    return exception_error(EIO, error.what());
  } catch (const Error& error) {
    return exception_error(error.code(), error.message().c_str());
  } catch (std::errc code) {
    return {static_cast<int>(code), std::string()};
  } catch (...) {
    return {EIO, "not a standard exception"};  // it has no text
  }
#else
  std::terminate();
#endif
}

/// Runs `body`, and returns `failed()` if it throws. The only place that catches exceptions:
/// without exceptions, a failed allocation terminates the program (README.md, "Without
/// exceptions").
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

/// Returns an Error, without its message if out of memory.
inline Error plain_error(int code, std::string_view text) noexcept {
  return attempt([&] { return Error{code, std::string(text)}; },
                 [&] { return Error{code, std::string()}; });
}

/// Runs `body`, which returns a Result, and converts exceptions to an Error.
template <class Body>
std::invoke_result_t<Body> guarded(Body&& body) noexcept {
  return attempt(std::forward<Body>(body), &current_error);
}

/// Returns an Error with the result of `text()` as its message, or ENOMEM if out of memory.
template <class Text>
FLETCHING_DETAIL_COLD Error error_with(int code, Text&& text) noexcept {
  return attempt([&] { return Error{code, std::forward<Text>(text)()}; }, &current_error);
}

}  // namespace detail
}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_RESULT_HPP
