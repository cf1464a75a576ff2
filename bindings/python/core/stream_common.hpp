// SPDX-License-Identifier: Apache-2.0
//
// Code that Python's streams and device streams share.
#ifndef FLETCHING_PYTHON_STREAM_COMMON_HPP
#define FLETCHING_PYTHON_STREAM_COMMON_HPP

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "batch.hpp"
#include "fletching/stream_adapters.hpp"
#include "stream_lock.hpp"

namespace fletching::python {

/// The Python classes for a batch of `Raw` and for its stream.
template <class Raw>
struct StreamTypes;
template <>
struct StreamTypes<ArrowArrayStream> {
  using Batch = PyArray;
  static constexpr const char* kName = "ArrayStream";
};
template <>
struct StreamTypes<ArrowDeviceArrayStream> {
  using Batch = PyDeviceArray;
  static constexpr const char* kName = "DeviceArrayStream";
};

/// A stream that Python reads, or exports once. Every function takes the lock and is called without
/// the GIL, because a producer may run Python code. Errors: EDEADLK if a producer uses its own
/// stream; ECHILD in a child of fork if another thread was reading the stream.
template <class Raw>
class StreamState {
 public:
  using Batch = typename StreamReader<Raw>::batch_type;

  explicit StreamState(Owner<Raw> stream) noexcept
      : device_type_(detail::StreamTraits<Raw>::device_type(stream)), stream_(std::move(stream)) {}

  [[nodiscard]] ArrowDeviceType device_type() const noexcept { return device_type_; }

  /// Returns the schema, which is read once.
  Result<SharedSchema> schema() {
    const Call call(*this);
    if (!call) return call.refused();
    return read_schema();
  }

  /// Returns the schema if it was already read.
  std::optional<SharedSchema> known_schema() {
    const Call call(*this);
    return call.state == StreamLock::kLost ? std::nullopt : schema_;
  }

  /// Returns the next batch with the schema; nullopt at the end.
  std::optional<Result<std::pair<SharedSchema, Batch>>> next() {
    const Call call(*this);
    if (!call) return call.refused();
    Result<SharedSchema> schema = read_schema();
    if (!schema) return std::move(schema).error();
    std::optional<Result<Batch>> batch = reader_->next();
    if (!batch) return std::nullopt;
    if (!batch->ok()) return std::move(*batch).error();
    return std::pair(*std::move(schema), **std::move(batch));
  }

  /// Moves the rest of the stream out. An unread stream is returned unchanged.
  Result<Owner<Raw>> move_out() {
    const Call call(*this);
    if (!call) return call.refused();
    if (!reader_ && stream_.is_released()) return consumed();
    if (!reader_) return std::move(stream_);
    Result<SharedSchema> shared = read_schema();
    if (!shared) return std::move(shared).error();
    Result<Schema> schema = shared->view();
    if (!schema) return std::move(schema).error();
    StreamReader<Raw> reader = *std::move(reader_);
    reader_.reset();
    if constexpr (std::same_as<Raw, ArrowArrayStream>) {
      return make_array_stream(*std::move(schema), std::move(reader));
    } else {
      return make_device_stream(*std::move(schema), device_type_, std::move(reader));
    }
  }

  Status close() {
    const Call call(*this);
    if (!call) return call.refused();
    reader_.reset();
    stream_.release();
    return {};
  }

 private:
  /// Locks the stream for a call.
  struct Call {
    explicit Call(StreamState& called) : lock(called.lock_), state(lock.lock()) {}
    ~Call() {
      if (state == StreamLock::kLocked) lock.unlock();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    explicit operator bool() const noexcept { return state == StreamLock::kLocked; }
    [[nodiscard]] Error refused() const {
      const std::string name(StreamTypes<Raw>::kName);
      if (state == StreamLock::kLost) {
        return {ECHILD, name +
                            ": in use by another thread when the process was forked: expected "
                            "a stream that was not; hint: read it in the parent"};
      }
      return {EDEADLK, name + ": called by its own producer: expected a call after the batch"};
    }

    StreamLock& lock;
    const StreamLock::State state;
  };

  static Error consumed() {
    return {EINVAL, std::string(StreamTypes<Raw>::kName) +
                        ": stream is consumed: expected a live stream; hint: a stream is read or "
                        "exported once"};
  }

  Result<SharedSchema> read_schema() {
    if (!reader_ && stream_.is_released()) return consumed();
    if (!reader_) reader_.emplace(std::move(stream_));
    if (!schema_) {
      Result<Schema> schema = reader_->schema();
      if (!schema) return std::move(schema).error();
      Result<SharedSchema> shared = share_checked(*std::move(schema), "get_schema");
      if (!shared) return std::move(shared).error();
      schema_ = *std::move(shared);
    }
    return *schema_;
  }

  const ArrowDeviceType device_type_;
  StreamLock lock_;
  Owner<Raw> stream_;                        // until the first read
  std::optional<StreamReader<Raw>> reader_;  // after the first read
  std::optional<SharedSchema> schema_;
};

/// The Python iterator that a stream reads; NULL after the stream's release. Written with the GIL
/// held.
using Iterator = std::shared_ptr<PyObject*>;

template <class Raw>
struct PyStream {
  Foreign<std::unique_ptr<StreamState<Raw>>> state;
  Iterator iterator{};  // set while this object owns the stream
};

/// Reports the iterator to Python's collector. The iterator often refers to the stream, for example
/// as a generator method of the object that keeps the stream.
template <class Raw>
int traverse_stream(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const Iterator& iterator = nb::inst_ptr<PyStream<Raw>>(self)->iterator;
  if (iterator != nullptr) Py_VISIT(*iterator);
  return 0;
}

template <class Raw>
int clear_stream(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  auto& state = *nb::inst_ptr<PyStream<Raw>>(self)->state;
  const nb::error_scope pending;
  (void)without_gil([&] { return state->close(); });
  return 0;
}

template <class Raw>
PyType_Slot stream_slots[] = {no_constructor[0],
                              {Py_tp_traverse, reinterpret_cast<void*>(&traverse_stream<Raw>)},
                              {Py_tp_clear, reinterpret_cast<void*>(&clear_stream<Raw>)},
                              {0, nullptr}};

template <class Raw>
PyStream<Raw> make_stream_object(Owner<Raw> stream, Iterator iterator = {}) {
  return PyStream<Raw>{Foreign(std::make_unique<StreamState<Raw>>(std::move(stream)), true),
                       std::move(iterator)};
}

/// Returns the stream in the capsule from a method of `object`, if it has that method.
template <class Raw>
std::optional<Owner<Raw>> import_raw_stream(nb::handle object, Name& method) {
  const nb::object capsule = call_protocol(object, method);
  if (!capsule.is_valid()) return std::nullopt;
  return Owner<Raw>(look_into<Raw>(capsule, method));
}

template <class Raw>
SharedSchema read_schema(PyStream<Raw>& self) {
  RaisedHere raised;
  Result<SharedSchema> schema = without_gil([&] { return (*self.state)->schema(); });
  if (!schema.ok()) raised.raise(schema.error());
  return *std::move(schema);
}

/// Returns the rest of the stream, for a capsule.
template <class Raw>
Owner<Raw> move_out(PyStream<Raw>& self, nb::handle requested, const char* method) {
  if (!requested.is_none()) check_requested(requested, *(*read_schema(self)).get(), method);
  Owner<Raw> moved = unwrap(without_gil([&] { return (*self.state)->move_out(); }));
  self.iterator.reset();
  return moved;
}

template <class Raw>
typename StreamTypes<Raw>::Batch next(PyStream<Raw>& self) {
  RaisedHere raised;
  auto batch = without_gil([&] { return (*self.state)->next(); });
  if (!batch) throw nb::stop_iteration();
  if (!batch->ok()) raised.raise(batch->error());
  auto [schema, array] = **std::move(batch);
  check_required_values(StreamTypes<Raw>::kName, **schema, *array);
  const bool waits = may_wait(array);
  return {Foreign(std::move(schema)), Foreign(unwrap(share(std::move(array))), waits)};
}

template <class Raw>
nb::str shown(PyStream<Raw>& self) {
  const auto schema = without_gil([&] { return (*self.state)->known_schema(); });
  std::string text("<fletching.");
  text.append(StreamTypes<Raw>::kName).append(" ");
  text.append(schema ? type_text(*(**schema).get()) : "of a schema that is not read");
  if constexpr (std::same_as<Raw, ArrowDeviceArrayStream>) {
    text.append(", ").append(device_name((*self.state)->device_type()));
  }
  return to_str(text.append(">"));
}

/// The batches of a Python iterator, for a stream whose consumer may be on any thread.
template <class Raw>
class PythonBatches {
  using Batch = typename StreamReader<Raw>::batch_type;

 public:
  PythonBatches(SharedSchema schema, const Iterator& iterator)
      : schema_(std::move(schema)), seen_(iterator), iterator_(*iterator) {}
  PythonBatches(PythonBatches&&) noexcept = default;
  PythonBatches& operator=(PythonBatches&&) = delete;
  PythonBatches(const PythonBatches&) = delete;
  PythonBatches& operator=(const PythonBatches&) = delete;
  ~PythonBatches() {
    if (seen_ == nullptr) return;
    if (const AnyThreadGil gil; gil) *seen_ = nullptr;
  }

  std::optional<Result<Batch>> operator()() {
    if (python_is_ending()) return Error(EIO, "batches: the Python interpreter has ended");
    AnyThreadGil gil;
    if (!gil) return Error(EIO, "batches: the Python interpreter has ended");
    gil.stop_delaying_the_end();  // the iterator may block forever
    try {
      const nb::object batch =
          call_python([&] { return nb::steal(PyIter_Next(iterator_.get().ptr())); });
      if (batch.is_valid()) {
        using Object = typename StreamTypes<Raw>::Batch;
        return view_of_batch<Object>(batch, *(*schema_).get(), number_++, "from_batches");
      }
      if (PyErr_Occurred() == nullptr) return std::nullopt;
    } catch (nb::python_error& error) {
      error.restore();
    }
    return current_python_error();
  }

 private:
  SharedSchema schema_;
  int64_t number_ = 0;  // index of the next batch
  Iterator seen_;       // for the collector
  Reference iterator_;
};

constinit inline Name kDeviceStreamMethod("__arrow_c_device_stream__");

/// Implements __arrow_c_device_stream__.
template <class Raw, nb::object (*kExport)(PyStream<Raw>&, nb::handle)>
PyObject* device_stream_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                               PyObject* names) noexcept {
  return no_throw([&] {
    const nb::handle requested = requested_schema(arguments, count, names, kDeviceStreamMethod);
    return kExport(*nb::inst_ptr<PyStream<Raw>>(self), requested).release().ptr();
  });
}

template <class Raw, nb::object (*kExport)(PyStream<Raw>&, nb::handle)>
PyMethodDef device_stream_definition{
    "__arrow_c_device_stream__",
    reinterpret_cast<PyCFunction>(
        reinterpret_cast<void (*)()>(&device_stream_method<Raw, kExport>)),
    METH_FASTCALL | METH_KEYWORDS,
    "__arrow_c_device_stream__($self, /, requested_schema=None, **kwargs)\n"
    "--\n"
    "\n"
    "Returns an arrow_device_array_stream capsule with the rest of the stream, and consumes this\n"
    "object. Raises Error for a consumed stream and for a requested schema of another kind, and\n"
    "NotImplementedError for an unknown keyword that is not None."};

template <class Raw>
void bind_stream_common(nb::class_<PyStream<Raw>>& type, const char* signature_of_next,
                        const char* signature_of_enter) {
  type.def_prop_ro(
          "schema", [](PyStream<Raw>& self) { return PySchema{Foreign(read_schema(self))}; },
          "The schema of every batch. The first access calls the producer. Raises Error for the\n"
          "producer's error and for a consumed stream.")
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig(signature_of_next))
      .def("__next__", &next<Raw>)
      .def(
          "close",
          [](PyStream<Raw>& self) { unwrap(without_gil([&] { return (*self.state)->close(); })); },
          "Releases the stream early. Batches stay valid.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig(signature_of_enter))
      .def(
          "__exit__",
          [](PyStream<Raw>& self, const nb::args& /*raised*/) {
            unwrap(without_gil([&] { return (*self.state)->close(); }));
          },
          nb::sig("def __exit__(self, *args: object) -> None"), "Closes the stream.")
      .def("__repr__", &shown<Raw>);
}

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_STREAM_COMMON_HPP
