// SPDX-License-Identifier: Apache-2.0
//
// Glue between Python and the C++ library: errors, the GIL, references that outlive the
// interpreter.
#ifndef FLETCHING_PYTHON_PYTHON_HPP
#define FLETCHING_PYTHON_PYTHON_HPP

#include <cxxabi.h>
#include <nanobind/nanobind.h>

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/result.hpp"

namespace fletching::python {

namespace nb = nanobind;

/// Looks up fletching.Error for all imports of the module, and lets foreign releases detect the end
/// of the interpreter.
void bind_python(nb::module_& module);

/// Raises fletching.Error with the errno value, the message and, if valid, the metadata and the
/// cause; raises MemoryError for ENOMEM.
[[noreturn]] void raise(const Error& error, nb::handle metadata = {}, nb::handle cause = {});

/// For classes whose objects only functions create: `Class()`, `Class.__new__(Class)` and a copy
/// raise TypeError. Otherwise they would create an object without a value.
extern PyType_Slot no_constructor[];

/// Adds a method that parses its own arguments.
void add_method(nb::handle type, PyMethodDef& definition);
/// Decodes foreign text that may not be UTF-8: invalid bytes become "\\xff", or are handled by
/// `errors`.
nb::str to_str(std::string_view text, const char* errors = "backslashreplace");
/// Encodes a str as UTF-8. A lone surrogate is escaped, as in "\\udcff".
std::string to_utf8(nb::handle text);
/// Returns the name of a type without calling its metaclass.
std::string name_of_type(nb::handle type);

/// A method name, interned on first use: Python finds interned names in a type's cache, and
/// searches for others.
class Name {
 public:
  explicit constexpr Name(const char* text) noexcept : text_(text) {}

  [[nodiscard]] nb::handle get();
  [[nodiscard]] const char* text() const noexcept { return text_; }
  operator const char*() const noexcept { return text_; }

 private:
  const char* text_;
  std::atomic<PyObject*> interned_{nullptr};
};

/// Returns an empty dictionary or list. nanobind's own constructors do not check for memory.
template <class Container>
Container empty() {
  Container made;
  if (!made.is_valid()) throw nb::python_error();
  return made;
}

/// Raises a TypeError or a BufferError.
[[noreturn]] void raise_type_error(const std::string& message);
[[noreturn]] void raise_buffer_error(const std::string& message);
/// Raises TypeError for an object without the methods of a protocol.
[[noreturn]] void raise_without(const char* operation, const char* what, const char* expected,
                                nb::handle object);

template <class T>
T unwrap(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return *std::move(result);
}
inline void unwrap(const Status& status) {
  if (!status.ok()) raise(status.error());
}

/// Never returns; other threads can take the GIL.
[[noreturn]] void park() noexcept;

/// Releases the GIL until destruction. If the interpreter has started to end by then, the thread is
/// parked, as in Python 3.14. Earlier versions call pthread_exit in a thread that waits for the
/// GIL, which would terminate the process below a noexcept function.
class NoGil {
 public:
  NoGil() noexcept : thread_(PyEval_SaveThread()) {}
  ~NoGil();
  NoGil(const NoGil&) = delete;
  NoGil& operator=(const NoGil&) = delete;

 private:
  PyThreadState* thread_;
};

/// Returns the result of `call`, called without the GIL: for foreign callbacks and waits.
template <class Call>
auto without_gil(const Call& call) {
  const NoGil released;
  return call();
}

/// Returns the result of `call`, which runs Python code. With libstdc++, a thread that pthread_exit
/// ends there is parked; other libraries have no name for that unwinding. The exception has no
/// object: the reference to it is NULL, which gcc checks for in both sanitizers.
template <class Call>
#if defined(__GLIBCXX__)
__attribute__((no_sanitize("null", "alignment")))
#endif
auto call_python(const Call& call) {
#if defined(__GLIBCXX__)
  try {
    return call();
  } catch (const abi::__forced_unwind&) {
    park();
  }
#else
  return call();
#endif
}

/// Converts the current exception to an Error: the errno value of an OSError, ENOMEM, or EIO.
/// Clears the exception; a RaisedHere of this thread keeps it. Requires the GIL.
Error current_python_error();

/// Keeps the exception that a Python producer raises on this thread while a Python consumer calls
/// it: the C interface between them passes only an errno value and a message. Requires the GIL.
class RaisedHere {
 public:
  RaisedHere() noexcept;
  ~RaisedHere();
  RaisedHere(const RaisedHere&) = delete;
  RaisedHere& operator=(const RaisedHere&) = delete;

  /// Raises the original exception with its type and traceback if `error` was created from it and
  /// is unchanged; otherwise fletching.Error with the exception as its cause.
  [[noreturn]] void raise(const Error& error);

  /// Raises a kept exception that is not an Exception, such as KeyboardInterrupt.
  void raise_exit();

  static void keep(nb::python_error&& raised, const Error& error) noexcept;

 private:
  struct Kept {
    nb::python_error exception;
    int code;
    std::string text;
  };

  RaisedHere* outer_;
  std::optional<Kept> kept_;
};

/// Returns the result of `call`, called without the GIL. Raises KeyboardInterrupt and other exits
/// from a registered waiter; the waiter's other exceptions are Errors.
template <class Call>
auto call_foreign(const Call& call) {
  RaisedHere raised;
  auto result = without_gil(call);
  raised.raise_exit();
  return result;
}

/// Owner of foreign structs. Its destructor preserves the current exception, and releases the GIL
/// if a release may wait: for a vendor's runtime, or for a producer's thread that needs the GIL. It
/// keeps the GIL for CPU memory, because taking the GIL again may take long.
template <class T>
class Foreign {
 public:
  explicit Foreign(T value, bool may_wait = false) noexcept
      : value_(std::move(value)), may_wait_(may_wait) {}
  Foreign(Foreign&& other) noexcept
      : value_(std::exchange(other.value_, std::nullopt)), may_wait_(other.may_wait_) {}
  Foreign& operator=(Foreign&&) = delete;
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;
  ~Foreign() {
    if (!value_) return;
    const nb::error_scope pending;
    std::optional<NoGil> released;
    if (may_wait_) released.emplace();
    value_.reset();
  }

  T& operator*() noexcept { return *value_; }
  const T& operator*() const noexcept { return *value_; }
  T* operator->() noexcept { return &*value_; }
  const T* operator->() const noexcept { return &*value_; }

 private:
  std::optional<T> value_;
  bool may_wait_;
};

/// Returns whether this is the main thread of the process, on which Python runs signal handlers.
bool is_main_thread() noexcept;

/// Returns whether the interpreter has started to end. After that, Python must not be used.
bool python_is_ending() noexcept;

/// Returns a number that differs in a child of fork.
int fork_count() noexcept;
/// Warns once about objects that a child of fork does not release.
void leak_after_fork() noexcept;

/// Holds the GIL on any thread, preserving the current exception. Invalid after the interpreter has
/// started to end, except on the thread that ends it, which then destroys the objects of modules.
/// Callers leak their objects if it is invalid.
class AnyThreadGil {
 public:
  AnyThreadGil() noexcept;
  ~AnyThreadGil();
  AnyThreadGil(const AnyThreadGil&) = delete;
  AnyThreadGil& operator=(const AnyThreadGil&) = delete;

  explicit operator bool() const noexcept { return entered_; }
  /// Lets the interpreter end without waiting for this thread.
  void stop_delaying_the_end() noexcept;

 private:
  bool entered_;
  bool delays_end_;
  PyGILState_STATE state_{};
  std::optional<nb::error_scope> pending_;
};

/// A reference to a Python object, inside an object that any thread may destroy.
class Reference {
 public:
  explicit Reference(nb::handle object) noexcept : object_(object.inc_ref().ptr()) {}
  Reference(Reference&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Reference& operator=(Reference&&) = delete;
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  ~Reference() {
    if (object_ == nullptr) return;
    if (const AnyThreadGil gil; gil) Py_DECREF(object_);
  }

  [[nodiscard]] nb::handle get() const noexcept { return object_; }

 private:
  PyObject* object_;
};

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_PYTHON_HPP
