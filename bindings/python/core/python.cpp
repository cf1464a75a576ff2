// SPDX-License-Identifier: Apache-2.0
#include "python.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/detail/text.hpp"

namespace fletching::python {
namespace {

PyObject* error_type = nullptr;  // fletching.Error; lives as long as the process

// The number of foreign threads that use Python, and whether entering is forbidden.
std::atomic<int> inside{0};
std::atomic<bool> closed{false};
std::atomic<bool> has_leaked{false};
std::atomic<int> forks{0};
pthread_t closer;  // the thread that ends the interpreter, valid once closed

/// Runs as an atexit function: waits for the threads inside, which need the GIL to leave.
void close() {
  closer = pthread_self();
  closed = true;
  const NoGil released;
  for (int now = inside; now > 0; now = inside) inside.wait(now);
}

void leave() noexcept {
  if (inside.fetch_sub(1) == 1) inside.notify_all();
}

/// Runs as an atexit function. Disables nanobind's leak report if callbacks of fletching.abi or
/// daemon threads keep objects intentionally.
void allow_kept_objects() {
  const nb::object modules = nb::module_::import_("sys").attr("modules");
  const nb::object callbacks = modules.attr("get")("fletching._callbacks");
  const nb::object threading = modules.attr("get")("threading");
  const bool keeps = (!callbacks.is_none() && nb::cast<bool>(callbacks.attr("keeps_objects")())) ||
                     (!threading.is_none() && nb::cast<int>(threading.attr("active_count")()) > 1);
  if (keeps) nb::set_leak_warnings(false);
}

/// Replaces C++ names in a message's hint with the Python names.
std::string in_python(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"OnCapture::kExternalEvent", "OnCapture.EXTERNAL"},
      {"pass pack_mask, which makes bits of it", "pass a mask of bits"},
      {", or pass Nulls::kIgnore", ""},
  };
  for (const auto& [name, here] : kNames) {
    if (const size_t at = text.find(name); at != std::string::npos) {
      text.replace(at, name.size(), here);
    }
  }
  return text;
}

/// Returns whether this thread is destroying the interpreter's remaining objects. After that it has
/// no Python state.
bool ends_python() noexcept {
  return pthread_equal(pthread_self(), closer) != 0 && PyGILState_GetThisThreadState() != nullptr;
}

/// Warns once.
void leak() noexcept {
  if (!has_leaked.exchange(true)) {
    std::fputs("fletching: released after the end of Python: the objects are leaked\n", stderr);
  }
}

}  // namespace

void bind_python(nb::module_& module) {
  error_type = nb::module_::import_("fletching._error").attr("Error").ptr();
  Py_INCREF(error_type);
  module.attr("Error") = nb::handle(error_type);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&allow_kept_objects));
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&close));
  // Runs before nanobind's own function, which would report leaks as errors of this module.
  Py_AtExit([] {
    if (has_leaked) nb::set_leak_warnings(false);
  });
  // A child of fork does not have the threads that were inside.
  pthread_atfork(nullptr, nullptr, [] {
    inside = 0;
    ++forks;
  });
}

nb::str to_str(std::string_view text, const char* errors) {
  PyObject* decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), errors);
  if (decoded == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(decoded);
}

std::string to_utf8(nb::handle text) {
  const nb::object bytes =
      nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) throw nb::python_error();
  return {PyBytes_AsString(bytes.ptr()), static_cast<size_t>(PyBytes_Size(bytes.ptr()))};
}

std::string name_of_type(nb::handle type) {
  const nb::object name = nb::steal(PyType_GetName(reinterpret_cast<PyTypeObject*>(type.ptr())));
  if (!name.is_valid()) throw nb::python_error();
  return to_utf8(name);
}

void raise(const Error& error, nb::handle metadata, nb::handle cause) {
  if (error.code() == ENOMEM) {
    PyErr_SetObject(PyExc_MemoryError, to_str(in_python(error.message())).ptr());
    throw nb::python_error();
  }
  const nb::object raised =
      nb::handle(error_type)(error.code(), to_str(in_python(error.message())));
  if (metadata.is_valid()) nb::setattr(raised, "metadata", metadata);
  if (cause.is_valid()) PyException_SetCause(raised.ptr(), cause.inc_ref().ptr());
  PyErr_SetObject(error_type, raised.ptr());
  throw nb::python_error();
}

namespace {

PyObject* refuse_new(PyTypeObject* type, PyObject* /*arguments*/, PyObject* /*keywords*/) {
  const nb::object name = nb::steal(PyType_GetName(type));
  if (!name.is_valid()) return nullptr;
  PyErr_Format(PyExc_TypeError, "%U: no constructor: expected a function such as from_arrow",
               name.ptr());
  return nullptr;
}

}  // namespace

PyType_Slot no_constructor[] = {{Py_tp_new, reinterpret_cast<void*>(&refuse_new)}, {0, nullptr}};

void add_method(nb::handle type, PyMethodDef& definition) {
  PyObject* method = PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &definition);
  if (method == nullptr) throw nb::python_error();
  nb::setattr(type, definition.ml_name, nb::steal(method));
}

nb::handle Name::get() {
  PyObject* interned = interned_.load(std::memory_order_acquire);
  if (interned != nullptr) return interned;
  interned = PyUnicode_InternFromString(text_);
  if (interned == nullptr) throw nb::python_error();
  interned_.store(interned, std::memory_order_release);  // the same object for every thread
  return interned;
}

void raise_type_error(const std::string& message) {
  PyErr_SetObject(PyExc_TypeError, to_str(in_python(message)).ptr());
  throw nb::python_error();
}

void raise_buffer_error(const std::string& message) {
  PyErr_SetObject(PyExc_BufferError, to_str(in_python(message)).ptr());
  throw nb::python_error();
}

void raise_without(const char* operation, const char* what, const char* expected,
                   nb::handle object) {
  raise_type_error(std::string(operation) + ": object has no " + what + ": expected " + expected +
                   ", got " + name_of_type(object.type()));
}

namespace {

/// Returns another stream's Error, with its errno value and message unchanged.
Error passed_on(nb::handle error) {
  const nb::object number = error.attr("errno"), text = error.attr("strerror");
  const auto code = static_cast<int>(PyLong_AsLong(number.ptr()));
  PyErr_Clear();
  return {code > 0 ? code : EIO, to_utf8(nb::str(text))};
}

/// Throws if a method of the exception raises.
Error described(const nb::python_error& raised) {
  if (raised.matches(error_type)) return passed_on(raised.value());
  int code = ENOMEM;  // set without an import, which could fail
  if (!raised.matches(PyExc_MemoryError)) {
    const nb::object errno_of = nb::module_::import_("fletching._errno").attr("errno_of");
    code = nb::cast<int>(errno_of(raised.value()));
  }
  std::string text = name_of_type(raised.type());
  PyObject* shown = PyObject_Str(raised.value().ptr());
  if (shown == nullptr) {
    PyErr_Clear();
  } else if (const nb::object message = nb::steal(shown); nb::len(message) != 0) {
    text.append(": ").append(to_utf8(message));
  }
  return {code, std::move(text)};
}

}  // namespace

Error current_python_error() {
  nb::python_error raised;
  Error error(EIO, "an exception that cannot be read");
  try {
    error = described(raised);
  } catch (const std::exception&) {  // from a method of the exception
  }
  RaisedHere::keep(std::move(raised), error);
  return error;
}

namespace {

thread_local RaisedHere* innermost = nullptr;

}  // namespace

RaisedHere::RaisedHere() noexcept : outer_(std::exchange(innermost, this)) {}
RaisedHere::~RaisedHere() { innermost = outer_; }

void RaisedHere::keep(nb::python_error&& raised, const Error& error) noexcept {
  if (innermost == nullptr) return;
  innermost->kept_.reset();
  (void)detail::guarded([&]() -> Status {  // without memory only the Error remains
    std::string text = detail::printable(std::string_view(error.message()));
    innermost->kept_.emplace(Kept{std::move(raised), error.code(), std::move(text)});
    return {};
  });
}

void RaisedHere::raise(const Error& error) {
  if (!kept_) python::raise(error);
  const bool is_same = kept_->code == error.code() && kept_->text == error.message();
  // A StopIteration raised by an iterator would end the iteration without an error.
  if (is_same && !kept_->exception.matches(PyExc_StopIteration)) throw std::move(kept_->exception);
  python::raise(error, {}, kept_->exception.value());
}

void RaisedHere::raise_exit() {
  if (kept_ && !kept_->exception.matches(PyExc_Exception)) throw std::move(kept_->exception);
}

bool is_main_thread() noexcept { return ::syscall(SYS_gettid) == ::getpid(); }

bool python_is_ending() noexcept { return closed; }

int fork_count() noexcept { return forks; }

void leak_after_fork() noexcept {
  if (has_leaked.exchange(true)) return;
  // Does not use stdio: a thread that the child lacks may hold its lock.
  static constexpr char kWarning[] =
      "fletching: an async stream was released in a child of fork: it is leaked\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kWarning, sizeof kWarning - 1);
}

void park() noexcept {
  for (;;) ::pause();
}

NoGil::~NoGil() {
  inside.fetch_add(1);
  if (closed && !ends_python()) {
    leave();
    park();
  }
  PyEval_RestoreThread(thread_);
  leave();
}

AnyThreadGil::AnyThreadGil() noexcept : entered_(false), delays_end_(false) {
  inside.fetch_add(1);
  if (closed && !ends_python()) {
    leave();
    leak();
    return;
  }
  entered_ = delays_end_ = true;
  state_ = PyGILState_Ensure();
  pending_.emplace();
}

AnyThreadGil::~AnyThreadGil() {
  if (!entered_) return;
  pending_.reset();
  PyGILState_Release(state_);
  stop_delaying_the_end();
}

void AnyThreadGil::stop_delaying_the_end() noexcept {
  if (std::exchange(delays_end_, false)) leave();
}

}  // namespace fletching::python
