// SPDX-License-Identifier: Apache-2.0
//
// The two ends of an async device stream. fletching/_async.py turns them into iterators.
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <string_view>
#include <vector>

#include <nanobind/stl/optional.h>

#include "array_common.hpp"
#include "async_common.hpp"
#include "batch.hpp"
#include "fletching/async_consumer.hpp"
#include "fletching/async_producer.hpp"

namespace fletching::python {
namespace {

// --- Metadata

std::string_view text_of(nb::handle text) {
  if (PyBytes_Check(text.ptr())) {
    return {PyBytes_AsString(text.ptr()), static_cast<size_t>(PyBytes_Size(text.ptr()))};
  }
  if (!PyUnicode_Check(text.ptr())) raise_type_error("metadata: expected bytes or str");
  Py_ssize_t size = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) throw nb::python_error();
  return {data, static_cast<size_t>(size)};
}

nb::dict read_metadata(const std::string& block) {
  if (block.empty()) return empty<nb::dict>();
  return to_dictionary(unwrap(MetadataView::read(block.data(), block.size())));
}

/// Encodes a dictionary of strings as ArrowSchema.metadata; returns an empty string for an empty
/// dictionary.
std::string encode(const nb::dict& metadata) {
  std::vector<KeyValue> pairs;
  for (const auto& [key, value] : metadata) pairs.push_back({text_of(key), text_of(value)});
  return pairs.empty() ? std::string() : unwrap(encode_metadata(pairs));
}

/// Encodes the metadata of an error. If it is not a dictionary of strings, the error is sent
/// without metadata.
std::string encode_if_any(nb::handle metadata) {
  try {
    return encode_metadata_of(metadata);
  } catch (const std::exception&) {
    return {};
  }
}

// --- Executors

/// The thread that calls the handlers. It lives as long as the process; a child of fork has its
/// own.
std::atomic<WorkerThread*> worker{nullptr};

Executor& executor() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (worker == nullptr) worker = unwrap(WorkerThread::start()).release();
  return *worker;
}

/// Calls the handler of a consumer of this module, which does not block, on the thread that caused
/// the call, so that a stream within one event loop wakes no thread. Other calls run on the worker.
class NearbyExecutor final : public Executor {
 public:
  void submit(Job& job) noexcept override {
    queue != nullptr ? queue->submit(job) : worker.load()->submit(job);
  }

  /// The queue of this thread's innermost call_stream, which runs the jobs after its call.
  static thread_local RunQueue* queue;
};
thread_local RunQueue* NearbyExecutor::queue = nullptr;
NearbyExecutor nearby;

/// Returns the result of `call`, called without the GIL, after running the handler calls that it
/// caused.
template <class Call>
auto call_stream(const Call& call) {
  return without_gil([&] {
    RunQueue jobs;
    RunQueue* const outer = std::exchange(NearbyExecutor::queue, &jobs);
    auto result = call();
    jobs.run_ready();
    NearbyExecutor::queue = outer;
    return result;
  });
}

// --- The consumer

/// A producer's error with its metadata, encoded as ArrowSchema.metadata.
struct Failure {
  Error error;
  std::string metadata;
};

/// Receives the producer's schema, tasks and end on any thread.
class Listener final : public AsyncListener {
 public:
  Listener(nb::handle notify, const Gate* gate) : notify_(notify, gate) {}

  void on_schema(Schema schema, AsyncStreamInfo info) noexcept override {
    Result<SharedSchema> shared = share_checked(std::move(schema), "on_schema");
    if (shared.ok()) {
      const std::lock_guard lock(mutex_);
      schema_ = *std::move(shared);
      device_type_ = info.device_type;
      metadata_ = std::move(info.metadata);
    } else {
      end(Failure{std::move(shared).error(), {}});
    }
    notify_();
  }
  void on_task() noexcept override { notify_(); }
  void on_end() noexcept override {
    end(std::nullopt);
    notify_();
  }
  void on_error(const Error& error, std::string_view metadata) noexcept override {
    Failure failure{error, {}};
    // If the metadata cannot be allocated, the error is passed on without it.
    (void)detail::guarded([&]() -> Status { return failure.metadata = metadata, Status(); });
    end(std::move(failure));
    notify_();
  }

  void end(std::optional<Failure> failure) {
    const std::lock_guard lock(mutex_);
    if (!ended_) failure_ = std::move(failure);
    ended_ = true;
  }
  [[nodiscard]] bool ended() const {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  /// Returns the error that ended the stream, once.
  std::optional<Failure> take_failure() {
    const std::lock_guard lock(mutex_);
    return std::exchange(failure_, std::nullopt);
  }
  [[nodiscard]] std::optional<SharedSchema> schema() const {
    const std::lock_guard lock(mutex_);
    return schema_;
  }
  [[nodiscard]] ArrowDeviceType device_type() const {
    const std::lock_guard lock(mutex_);
    return device_type_;
  }
  [[nodiscard]] std::string metadata() const {
    const std::lock_guard lock(mutex_);
    return metadata_ == nullptr ? std::string() : *metadata_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<SharedSchema> schema_;
  ArrowDeviceType device_type_ = 0;
  std::unique_ptr<const std::string> metadata_;
  bool ended_ = false;
  std::optional<Failure> failure_;
  Notify notify_;
};

struct Consumer {
  std::shared_ptr<Listener> listener;
  AsyncConsumer consumer;
};

/// Every call runs without the GIL, because the producer may run Python code.
struct PyConsumer {
  OfProcess<Consumer> both;
  std::string batch_metadata{};  // metadata of the last batch
};

PyConsumer make_consumer(nb::handle notify, const Gate* gate) {
  auto listener = std::make_shared<Listener>(notify, gate);
  AsyncConsumer consumer = unwrap(AsyncConsumer::create(listener));
  return {OfProcess(Consumer{std::move(listener), std::move(consumer)})};
}

/// Returns the next batch, or nullopt if none has arrived.
std::optional<PyDeviceArray> take(PyConsumer& self, int64_t more) {
  Consumer& both = self.both.get();
  auto batch = call_stream([&] { return both.consumer.take(more); });
  if (!batch) return std::nullopt;
  if (!batch->ok()) {
    both.listener->end(std::nullopt);
    raise(batch->error());
  }
  std::optional<SharedSchema> schema = both.listener->schema();
  if (!schema) raise(Error(ENOMEM, "AsyncDeviceArrayStream: no memory for the schema"));
  const auto& metadata = (**batch).metadata;
  self.batch_metadata = metadata == nullptr ? std::string() : *metadata;
  DeviceArray array = std::move((**batch).array);
  check_required_values("AsyncDeviceArrayStream", ***schema, *array);
  const bool waits = may_wait(array);
  return PyDeviceArray{Foreign(*std::move(schema)),
                       Foreign(unwrap(share(std::move(array))), waits)};
}

void raise_error(PyConsumer& self) {
  const std::optional<Failure> failure = self.both.get().listener->take_failure();
  if (failure) raise(failure->error, read_metadata(failure->metadata));
}

std::optional<PySchema> schema_of_stream(const PyConsumer& self) {
  std::optional<SharedSchema> schema = self.both.get().listener->schema();
  if (!schema) return std::nullopt;
  return PySchema{Foreign(*std::move(schema))};
}

void bind_consumer(nb::module_& module) {
  nb::class_<PyConsumer>(module, "AsyncConsumer", nb::is_final(),
                         "The raw consumer of an async stream.")
      .def_static("create", &make_consumer, nb::arg("notify"), nb::arg("gate") = nb::none(),
                  nb::sig("def create(notify: collections.abc.Callable[[], object], gate: Gate | "
                          "None = None) -> AsyncConsumer"))
      .def("handler",
           [](PyConsumer& self) {
             return reinterpret_cast<uintptr_t>(self.both.get().consumer.handler());
           })
      .def(
          "request",
          [](PyConsumer& self, int64_t n) {
            Consumer& both = self.both.get();
            unwrap(call_stream([&] { return both.consumer.request(n); }));
          },
          nb::arg("n"))
      .def("take", &take, nb::arg("more"))
      .def("cancel",
           [](PyConsumer& self) {
             if (self.both.is_inherited()) return;
             Consumer& both = self.both.get();
             without_gil([&] { both.consumer.cancel(); });
           })
      .def("raise_error", &raise_error)
      .def_prop_ro("ended",
                   [](const PyConsumer& self) { return self.both.get().listener->ended(); })
      .def_prop_ro("schema", &schema_of_stream)
      .def_prop_ro(
          "metadata",
          [](const PyConsumer& self) {
            return read_metadata(self.both.get().listener->metadata());
          },
          nb::sig("def metadata(self) -> dict[bytes, bytes]"))
      .def_prop_ro(
          "batch_metadata",
          [](const PyConsumer& self) { return read_metadata(self.batch_metadata); },
          nb::sig("def batch_metadata(self) -> dict[bytes, bytes]"))
      .def_prop_ro(
          "state",
          [](const PyConsumer& self) { return static_cast<int>(self.both.get().consumer.state()); },
          "The state of the consumer, as numbered in docs/reference/async.md.")
      .def_prop_ro("device_type",
                   [](const PyConsumer& self) { return self.both.get().listener->device_type(); });
}

// --- The producer

/// Waits until the thread has run all earlier jobs.
class Drained final : public Job {
 public:
  bool run() noexcept override {
    run_.release();
    return false;
  }
  void wait() noexcept { run_.acquire(); }

 private:
  std::binary_semaphore run_{0};
};

/// Runs as an atexit function, while Python can still be called: finished streams release their
/// handlers and references.
void finish_streams() {
  if (worker == nullptr) return;
  static Drained drained;  // static, because the thread may still be inside `run`
  const NoGil released;
  worker.load()->submit(drained);
  drained.wait();
}

class Source final : public AsyncSource {
 public:
  Source(nb::handle on_demand, nb::handle on_stop, nb::handle on_release, const Gate* gate)
      : on_demand_(on_demand, gate), on_stop_(on_stop), on_release_(on_release) {}

  void on_demand(std::int64_t /*n*/) noexcept override { on_demand_(); }
  void on_stop() noexcept override { on_stop_(); }
  void on_release() noexcept override { on_release_(); }

 private:
  Notify on_demand_, on_stop_, on_release_;
};

struct PyProducer {
  OfProcess<AsyncProducer> producer;
  std::optional<SharedSchema> schema{};
  int64_t number = 0;  // index of the next batch
};

PyProducer start(uintptr_t handler, ArrowDeviceType device_type, const nb::dict& metadata,
                 nb::handle on_demand, nb::handle on_stop, nb::handle on_release, const Gate* gate,
                 bool is_nearby) {
  AsyncProducerOptions options;
  options.device_type = device_type;
  options.metadata = encode(metadata);
  options.source = std::make_shared<Source>(on_demand, on_stop, on_release, gate);
  auto* const raw = reinterpret_cast<ArrowAsyncDeviceStreamHandler*>(handler);
  Executor& far = executor();
  Executor& calls = is_nearby ? nearby : far;
  return {OfProcess(unwrap(AsyncProducer::start(raw, calls, std::move(options))))};
}

/// Returns false if the stream is over.
bool accepted(const Status& status) {
  if (!status.ok() && status.error().code() == ECANCELED) return false;
  unwrap(status);
  return true;
}

bool push(PyProducer& self, nb::handle batch, const nb::dict& metadata) {
  if (!self.schema) raise(Error(EINVAL, "push: no schema: expected a call of schema before"));
  DeviceArray view =
      view_of_batch<PyDeviceArray>(batch, *(*self.schema)->get(), self.number++, "send_async");
  std::string block = encode(metadata);
  AsyncProducer& producer = self.producer.get();
  return accepted(call_stream([&] { return producer.push(std::move(view), std::move(block)); }));
}

void bind_producer(nb::module_& module) {
  nb::class_<PyProducer>(module, "AsyncProducer", nb::is_final(),
                         "The raw producer of an async stream.")
      .def_static("start", &start, nb::arg("handler"), nb::arg("device_type"), nb::arg("metadata"),
                  nb::arg("on_demand"), nb::arg("on_stop"), nb::arg("on_release"),
                  nb::arg("gate") = nb::none(), nb::arg("is_nearby") = false,
                  nb::sig("def start(handler: int, device_type: int, metadata: dict[bytes | str, "
                          "bytes | str], on_demand: "
                          "collections.abc.Callable[[], object], on_stop: "
                          "collections.abc.Callable[[], object], on_release: "
                          "collections.abc.Callable[[], object], gate: Gate | None = None, "
                          "is_nearby: bool = False) -> AsyncProducer"))
      .def(
          "schema",
          [](PyProducer& self, nb::handle given) {
            const PySchema schema = to_schema(given);
            Schema view = unwrap(schema.shared->view());
            self.schema = *schema.shared;
            AsyncProducer& producer = self.producer.get();
            return accepted(call_stream([&] { return producer.schema(std::move(view)); }));
          },
          nb::arg("schema"))
      .def("push", &push, nb::arg("batch"), nb::arg("metadata"),
           nb::sig("def push(self, batch: object, metadata: dict[bytes | str, bytes | str]) -> "
                   "bool"))
      .def("end",
           [](PyProducer& self) {
             AsyncProducer& producer = self.producer.get();
             return accepted(call_stream([&] { return producer.end(); }));
           })
      .def(
          "fail",
          [](PyProducer& self, int code, const std::string& text, nb::handle metadata) {
            if (self.producer.is_inherited()) return;
            AsyncProducer& producer = self.producer.get();
            std::string block = encode_if_any(metadata);
            without_gil([&] { producer.fail(Error(code, text), std::move(block)); });
          },
          nb::arg("code"), nb::arg("text"), nb::arg("metadata") = nb::none())
      .def_prop_ro(
          "state",
          [](const PyProducer& self) { return static_cast<int>(self.producer.get().state()); },
          "The state of the producer, as numbered in docs/reference/async.md.")
      .def_prop_ro("demand", [](const PyProducer& self) {
        const AsyncProducer& producer = self.producer.get();
        return without_gil([&] { return producer.demand(); });
      });
}

}  // namespace

std::string encode_metadata_of(nb::handle mapping) {
  const nb::handle type(reinterpret_cast<PyObject*>(&PyDict_Type));
  return encode(nb::borrow<nb::dict>(type(mapping)));
}

void bind_async_stream(nb::module_& module) {
  nb::class_<Gate>(module, "Gate", nb::is_final(),
                   "Determines whether the next notification calls Python.")
      .def(nb::init<>())
      .def("open", [](Gate& self) { self.is_closed->exchange(false); });
  bind_consumer(module);
  bind_producer(module);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&finish_streams));
  pthread_atfork(nullptr, nullptr, [] { worker = nullptr; });
}

}  // namespace fletching::python
