// SPDX-License-Identifier: Apache-2.0
//
// What streams and device streams have in common in Python.
#ifndef FLETCHING_PYTHON_STREAM_COMMON_HPP
#define FLETCHING_PYTHON_STREAM_COMMON_HPP

#include <cerrno>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "array_common.hpp"
#include "fletching/stream_adapters.hpp"

namespace fletching::python {

/// The object of a batch of `Raw`, and of the stream.
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

/// A stream that Python reads, or exports once. Every function locks, and is called without the
/// GIL: a producer may be in Python. A producer that uses its own stream gets an error: the thread
/// would wait for itself.
template <class Raw>
class StreamState {
 public:
  using Batch = typename StreamReader<Raw>::batch_type;

  explicit StreamState(Owner<Raw> stream) noexcept
      : device_type_(detail::StreamTraits<Raw>::device_type(stream)), stream_(std::move(stream)) {}

  [[nodiscard]] ArrowDeviceType device_type() const noexcept { return device_type_; }

  /// The schema, read once.
  Result<SharedSchema> schema() {
    const Call call(*this);
    if (!call.is_first) return called_within();
    return read_schema();
  }

  /// The schema, if it was read before.
  std::optional<SharedSchema> known_schema() {
    const std::lock_guard lock(mutex_);
    return schema_;
  }

  /// The next batch with the schema; nothing at the end.
  std::optional<Result<std::pair<SharedSchema, Batch>>> next() {
    const Call call(*this);
    if (!call.is_first) return called_within();
    Result<SharedSchema> schema = read_schema();
    if (!schema) return std::move(schema).error();
    std::optional<Result<Batch>> batch = reader_->next();
    if (!batch) return std::nullopt;
    if (!batch->ok()) return std::move(*batch).error();
    return std::pair(*std::move(schema), **std::move(batch));
  }

  /// What is left of the stream. One that was not read is the producer's own.
  Result<Owner<Raw>> move_out() {
    const Call call(*this);
    if (!call.is_first) return called_within();
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
    if (!call.is_first) return called_within();
    reader_.reset();
    stream_.release();
    return {};
  }

 private:
  /// Locks the stream for a call, which is not the first one where the thread is in another.
  struct Call {
    explicit Call(StreamState& state)
        : lock(state.mutex_), is_called(state.is_called_), is_first(!is_called) {
      is_called = true;
    }
    ~Call() { is_called = !is_first; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    const std::lock_guard<std::recursive_mutex> lock;
    bool& is_called;
    const bool is_first;
  };

  static Error called_within() {
    return {EDEADLK, std::string(StreamTypes<Raw>::kName) +
                         ": called by its own producer: expected a call after the batch"};
  }

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
  std::recursive_mutex mutex_;
  bool is_called_ = false;
  Owner<Raw> stream_;                        // until it is read
  std::optional<StreamReader<Raw>> reader_;  // from then on
  std::optional<SharedSchema> schema_;
};

template <class Raw>
struct PyStream {
  Foreign<std::unique_ptr<StreamState<Raw>>> state;
};

template <class Raw>
PyStream<Raw> make_stream_object(Owner<Raw> stream) {
  return PyStream<Raw>{Foreign(std::make_unique<StreamState<Raw>>(std::move(stream)), true)};
}

/// The stream in the capsule that a method of `object` returns, if it has the method.
template <class Raw>
std::optional<Owner<Raw>> import_raw_stream(nb::handle object, Name& method) {
  const nb::object capsule = call_protocol(object, method);
  if (!capsule.is_valid()) return std::nullopt;
  return Owner<Raw>(look_into<Raw>(capsule, method));
}

template <class Raw>
SharedSchema read_schema(PyStream<Raw>& self) {
  return unwrap(without_gil([&] { return (*self.state)->schema(); }));
}

/// What is left of the stream, for a capsule.
template <class Raw>
Owner<Raw> move_out(PyStream<Raw>& self, nb::handle requested, const char* method) {
  if (!requested.is_none()) check_requested(requested, *(*read_schema(self)).get(), method);
  return unwrap(without_gil([&] { return (*self.state)->move_out(); }));
}

template <class Raw>
typename StreamTypes<Raw>::Batch next(PyStream<Raw>& self) {
  auto batch = without_gil([&] { return (*self.state)->next(); });
  if (!batch) throw nb::stop_iteration();
  auto [schema, array] = unwrap(*std::move(batch));
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
  explicit PythonBatches(nb::handle iterator) : iterator_(iterator) {}

  std::optional<Result<Batch>> operator()() {
    if (python_is_ending()) return Error(EIO, "batches: the Python interpreter has ended");
    const nb::gil_scoped_acquire gil;
    const nb::error_scope pending;
    try {
      const nb::object batch = nb::steal(PyIter_Next(iterator_.get().ptr()));
      if (batch.is_valid()) return to_batch(batch);
      if (PyErr_Occurred() == nullptr) return std::nullopt;
    } catch (nb::python_error& error) {
      error.restore();
    }
    return current_python_error();
  }

 private:
  static Batch to_batch(const nb::object& batch) {
    using Object = typename StreamTypes<Raw>::Batch;
    if (nb::isinstance<Object>(batch)) return unwrap(nb::cast<Object&>(batch).shared->view());
    const nb::object converted = nb::type<Object>().attr("from_arrow")(batch);
    return unwrap(nb::cast<Object&>(converted).shared->view());
  }

  Reference iterator_;
};

template <class Raw>
void bind_stream_common(nb::class_<PyStream<Raw>>& type, const char* signature_of_next) {
  type.def_prop_ro(
          "schema", [](PyStream<Raw>& self) { return PySchema{Foreign(read_schema(self))}; },
          "The schema of every batch. The first access asks the producer; Error for what "
          "it\nreports, and for a consumed stream.")
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig(signature_of_next))
      .def("__next__", &next<Raw>)
      .def(
          "close",
          [](PyStream<Raw>& self) { unwrap(without_gil([&] { return (*self.state)->close(); })); },
          "Releases the stream before its end. Batches stay valid.")
      .def("__repr__", &shown<Raw>);
}

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_STREAM_COMMON_HPP
