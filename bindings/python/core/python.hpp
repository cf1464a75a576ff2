// SPDX-License-Identifier: Apache-2.0
//
// Between Python and the C++ library: errors, the GIL, references that outlive the interpreter.
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

/// Finds fletching.Error, for all imports of the module, and lets foreign releases know when the
/// interpreter ends.
void bind_python(nb::module_& module);

/// Raises fletching.Error with the errno value, the message and, where they are valid, the metadata
/// and the cause; MemoryError for ENOMEM.
[[noreturn]] void raise(const Error& error, nb::handle metadata = {}, nb::handle cause = {});

/// For a class whose objects are made by functions: `Class()`, `Class.__new__(Class)` and a copy
/// are a TypeError. Without it they make an object that has no value.
extern PyType_Slot no_constructor[];

/// Adds a method that reads its arguments itself.
void add_method(nb::handle type, PyMethodDef& definition);
/// Foreign text, which may not be UTF-8: other bytes read "\\xff", or as `errors` says.
nb::str to_str(std::string_view text, const char* errors = "backslashreplace");
/// A str as UTF-8. A lone surrogate reads "\\udcff".
std::string to_utf8(nb::handle text);
/// The name of a type, without asking its metaclass.
std::string name_of_type(nb::handle type);

/// The name of a method, interned when it is first needed: Python finds such a name in the cache of
/// a type, and others by a search.
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

/// An empty dictionary or list; nanobind's own constructors do not check for memory.
template <class Container>
Container empty() {
  Container made;
  if (!made.is_valid()) throw nb::python_error();
  return made;
}

/// Raises a TypeError or a BufferError.
[[noreturn]] void raise_type_error(const std::string& message);
[[noreturn]] void raise_buffer_error(const std::string& message);
/// Raises the TypeError of an object without the methods of a protocol.
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

/// Never returns, and lets other threads have the GIL.
[[noreturn]] void park() noexcept;

/// Gives up the GIL until it is destroyed. If the interpreter has begun to end by then, the thread
/// is parked, as Python 3.14 does it: earlier versions call pthread_exit in a thread that waits for
/// the GIL, which ends the process below a noexcept function.
class NoGil {
 public:
  NoGil() noexcept : thread_(PyEval_SaveThread()) {}
  ~NoGil();
  NoGil(const NoGil&) = delete;
  NoGil& operator=(const NoGil&) = delete;

 private:
  PyThreadState* thread_;
};

/// What `call` returns, called without the GIL: for foreign callbacks and for waits.
template <class Call>
auto without_gil(const Call& call) {
  const NoGil released;
  return call();
}

/// What `call`, which runs Python code, returns. A thread that pthread_exit ends there is parked,
/// with libstdc++; other libraries have no name for its unwinding. The exception has no object: the
/// reference to it is NULL, which gcc looks for in the checks of both sanitizers.
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

/// The exception that is set, as an Error: the errno value of an OSError, ENOMEM, or else EIO.
/// Afterwards none is set; a RaisedHere of this thread keeps it. With the GIL.
Error current_python_error();

/// Keeps the exception that a Python producer raises on this thread while a Python consumer calls
/// it: between the two, C knows only an errno value and a text. With the GIL.
class RaisedHere {
 public:
  RaisedHere() noexcept;
  ~RaisedHere();
  RaisedHere(const RaisedHere&) = delete;
  RaisedHere& operator=(const RaisedHere&) = delete;

  /// Raises the exception with its type and traceback if `error` was made of it and passed on
  /// unchanged; else fletching.Error, whose cause it is.
  [[noreturn]] void raise(const Error& error);

  /// Raises an exception that is not an Exception, such as KeyboardInterrupt.
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

/// What `call` returns, called without the GIL. Raises KeyboardInterrupt and other exits of a
/// registered waiter, whose exceptions are Errors else.
template <class Call>
auto call_foreign(const Call& call) {
  RaisedHere raised;
  auto result = without_gil(call);
  raised.raise_exit();
  return result;
}

/// What owns foreign structs, destroyed with an exception kept that is set. Without the GIL where a
/// release may wait: for a vendor's runtime, or for a producer's thread that needs the GIL. Not for
/// memory of the CPU: a thread that gives the GIL up may wait long to get it back.
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

/// Whether this is the main thread of the process, on which Python runs signal handlers.
bool is_main_thread() noexcept;

/// Whether the interpreter has begun to end: then Python must not be used.
bool python_is_ending() noexcept;

/// A number that is another one in a child of fork.
int fork_count() noexcept;
/// Warns once of objects that a child of fork does not release.
void leak_after_fork() noexcept;

/// Holds the GIL on any thread, whatever exception is set there. Invalid when the interpreter has
/// begun to end, but for the thread that ends it, which destroys the objects of modules then: what
/// was to be released is leaked.
class AnyThreadGil {
 public:
  AnyThreadGil() noexcept;
  ~AnyThreadGil();
  AnyThreadGil(const AnyThreadGil&) = delete;
  AnyThreadGil& operator=(const AnyThreadGil&) = delete;

  explicit operator bool() const noexcept { return entered_; }
  /// From now on the end of the interpreter does not wait for this thread.
  void stop_delaying_the_end() noexcept;

 private:
  bool entered_;
  bool delays_end_;
  PyGILState_STATE state_{};
  std::optional<nb::error_scope> pending_;
};

/// A reference to a Python object in an object that any thread may destroy.
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
