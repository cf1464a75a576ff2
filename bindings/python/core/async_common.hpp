// SPDX-License-Identifier: Apache-2.0
//
// Code that both ends of an async stream share in Python.
#ifndef FLETCHING_PYTHON_ASYNC_COMMON_HPP
#define FLETCHING_PYTHON_ASYNC_COMMON_HPP

#include <atomic>
#include <cerrno>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "python.hpp"

namespace fletching::python {

/// Closed by a notification until Python has handled it. Another notification before that adds no
/// information, so it need not wait for the GIL.
struct Gate {
  std::shared_ptr<std::atomic<bool>> is_closed = std::make_shared<std::atomic<bool>>(false);
};

/// Calls a Python function on a producer or executor thread. With a gate, calls it only if the gate
/// is open.
class Notify {
 public:
  explicit Notify(nb::handle function, const Gate* gate = nullptr)
      : gate_(gate == nullptr ? nullptr : gate->is_closed), function_(function) {}

  void operator()() const noexcept {
    if (gate_ != nullptr && gate_->exchange(true)) return;
    const AnyThreadGil gil;
    if (!gil) return;
    PyObject* result = PyObject_CallNoArgs(function_.get().ptr());
    if (result == nullptr) {
      if (gate_ != nullptr) gate_->exchange(false);  // lets the next notification retry
      PyErr_WriteUnraisable(function_.get().ptr());
    }
    Py_XDECREF(result);
  }

 private:
  std::shared_ptr<std::atomic<bool>> gate_;
  Reference function_;
};

/// An object that depends on threads which do not exist in a child of fork, and whose locks they
/// may have held at the fork. In a child the object cannot be used and is leaked.
template <class T>
class OfProcess {
 public:
  explicit OfProcess(T value) : value_(std::in_place, std::move(value), true) {}
  OfProcess(OfProcess&&) noexcept = default;
  OfProcess& operator=(OfProcess&&) = delete;
  OfProcess(const OfProcess&) = delete;
  OfProcess& operator=(const OfProcess&) = delete;
  ~OfProcess() {
    if (value_ && is_inherited()) leak(std::move(value_));
  }

  [[nodiscard]] bool is_inherited() const noexcept { return process_ != fork_count(); }
  /// Raises Error in a child of fork.
  T& get() {
    if (is_inherited()) {
      raise(Error(ECHILD,
                  "async stream: made before the process was forked: expected one of this "
                  "process; hint: connect again"));
    }
    return **value_;
  }
  const T& get() const { return const_cast<OfProcess*>(this)->get(); }

 private:
  static void leak(std::optional<Foreign<T>> value) noexcept {
    leak_after_fork();
    [[maybe_unused]] const auto* kept =
        new (std::nothrow) std::optional<Foreign<T>>(std::move(value));
  }

  std::optional<Foreign<T>> value_;
  int process_ = fork_count();
};

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_ASYNC_COMMON_HPP
