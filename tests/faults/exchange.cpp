// SPDX-License-Identifier: Apache-2.0
#include "exchange.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "error_text.hpp"
#include "fletching/cuda_array.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/dlpack_stream.hpp"
#include "producer.h"
#include "released_array.hpp"

namespace fletching::faults {
namespace {

std::int64_t number_of(void* stream) {
  return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(stream));
}

// An array of the reference producer with its event. Counts its releases.
class Source {
 public:
  // `step`: name of the exchange.
  Source(Run& run, std::string step) : run_(run), step_(std::move(step)) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  void make(const std::string& backend, const char* name) {
    attempt("ExportArray", [&] {
      std::string text =
          call(FletchingProducerExportArray, backend.c_str(), name, schema_.out(), array_.out());
      if (!text.empty()) return text;
      ++made_;
      return text_of(attach(array_, testing::Counted(&releases_)));
    });
  }

  void attempt(const char* what, const std::function<std::string()>& body,
               ErrorReporting reporting = ErrorReporting::kReports) {
    run_.step((step_ + ": " + what).c_str(), reporting, body);
  }
  // Runs a step that also destroys the event with which one stream waits for another.
  void joins(const char* what, const std::function<std::string()>& body) {
    attempt(what, body, ErrorReporting::kTriesContext);
  }

  // Releases everything. Releases behind a stream happen later, on another thread.
  template <class... Owners>
  void release(Owners&... owners) {
    run_.clean_up((step_ + ": release").c_str(), ErrorReporting::kSilent, [&]() -> std::string {
      (static_cast<void>(Owners(std::move(owners))), ...);
      array_.release();
      schema_.release();
      if (!releases_.wait_for(made_)) return "the array was not released";
      return releases_.count() == made_ ? "" : "the array was released twice";
    });
  }

  const ArrowSchema& schema() const { return *schema_; }
  DeviceArray& array() { return array_; }

 private:
  Run& run_;
  const std::string step_;
  testing::Releases releases_;
  int made_ = 0;
  Schema schema_;
  DeviceArray array_;
};

bool has_streams(const std::string& backend) {
  return backend.starts_with("cuda") || backend.starts_with("rocm");
}

// `number`: the consumer's stream argument of __dlpack__.
template <class Tensor, class Export>
void exchange_tensor(Run& run, const std::string& step, const std::string& backend,
                     const Consumer& consumer, std::optional<std::int64_t> number, Export to) {
  Source source(run, step);
  Tensor tensor;
  ImportedTensor imported;
  source.make(backend, "int32");
  const ArrowDeviceType device = source.array()->device_type;
  source.attempt("export", [&] {
    Result<ConsumerStream> stream = ConsumerStream{.ordering = Ordering::kNone};
    if (has_streams(backend)) {
      stream = read_dlpack_stream(source.array()->device_type, number);
      if (!stream.ok()) return text_of(stream);
    } else {  // the consumer waits, because only it has the objects that Vulkan needs for waiting
      const Status done = consumer.synchronize(SyncEvent(source.array()));
      if (!done.ok()) return text_of(done);
    }
    return keep<Tensor>(to(source.schema(), source.array(), *stream), tensor);
  });
  source.attempt("import", [&] {
    ConsumerStream stream{.ordering = Ordering::kNone};
    if (consumer.stream != nullptr) {
      stream = {Ordering::kStream, {device, consumer.stream}};
    }
    return keep(from_dlpack(std::move(tensor), stream), imported);
  });
  source.attempt("wait", [&] { return text_of(consumer.synchronize(SyncEvent(imported.array))); });
  source.release(imported, tensor);
}

class CudaExchange {
 public:
  CudaExchange(Run& run, std::string backend, const Consumer& consumer)
      : run_(run), backend_(std::move(backend)), consumer_(consumer) {}

  // The exporter makes a stream for the array, the mask is on another stream, and the owner is
  // destroyed after the consumer's stream.
  void with_own_stream() {
    Source source(run_, "CUDA array with a mask");
    CudaArray described(nullptr);
    ImportedTensor imported;
    source.make(backend_, "nulls");
    describe(source, {}, {.mask = true}, described);
    source.joins("join_cuda_streams", [&] {
      void* named = reinterpret_cast<void*>(described.array_interface().stream.value_or(0));
      const std::array streams{on(consumer_.stream), on(consumer_.other_stream)};
      return text_of(join_cuda_streams(on(named), streams, 0));
    });
    source.joins("import", [&]() -> std::string {
      cuda_array_interface::Interface says = described.array_interface();
      if (says.mask == nullptr) return "mask: expected one, got none";
      cuda_array_interface::Interface mask = *says.mask;
      mask.stream = number_of(consumer_.other_stream);
      says.mask = &mask;
      return take(says, described, {.consumer_stream = on(consumer_.stream)}, imported);
    });
    source.attempt("wait_on", [&] {
      return text_of(SyncEvent(imported.array).wait_on(on(consumer_.stream)));
    });
    source.release(imported, described);
  }

  // The export names the consumer's stream, which waits.
  void with_given_stream() {
    Source source(run_, "CUDA array on a given stream");
    CudaArray described(nullptr);
    ImportedTensor imported;
    source.make(backend_, "int32");
    describe(source, on(consumer_.stream), {}, described);
    source.attempt("import",
                   [&] { return take(described.array_interface(), described, {}, imported); });
    source.attempt("synchronize", [&] { return text_of(SyncEvent(imported.array).synchronize()); });
    source.release(imported, described);
  }

  // With neither an event nor a stream, only the consumer is waited for, at the end.
  void without_a_stream() {
    Source source(run_, "CUDA array without a stream");
    CudaArray described(nullptr);
    ImportedTensor imported;
    source.make(backend_, "int32");
    source.attempt("synchronize", [&] {
      const Status done = SyncEvent(source.array()).synchronize();
      source.array()->sync_event = nullptr;
      return text_of(done);
    });
    describe(source, {}, {}, described);
    source.attempt("import", [&] {
      return take(described.array_interface(), described, {.consumer_stream = on(consumer_.stream)},
                  imported);
    });
    source.release(imported, described);
  }

 private:
  static Stream on(void* handle) { return {ARROW_DEVICE_CUDA, handle}; }

  static void describe(Source& source, std::optional<Stream> stream,
                       const CudaArrayExportOptions& options, CudaArray& described) {
    source.attempt("export", [&] {
      return keep(to_cuda_array(source.schema(), source.array(), stream, options), described);
    });
  }

  static std::string take(const cuda_array_interface::Interface& says, CudaArray& owner,
                          const CudaArrayImportOptions& options, ImportedTensor& imported) {
    return keep(from_cuda_array(says, std::move(owner), options), imported);
  }

  Run& run_;
  const std::string backend_;
  const Consumer& consumer_;
};

}  // namespace

void exchange_dlpack(Run& run, const std::string& backend, const Consumer& consumer) {
  std::optional<std::int64_t> number;
  if (has_streams(backend)) number = number_of(consumer.stream);
  exchange_tensor<DlpackTensor>(
      run, "DLPack", backend, consumer, number,
      [](auto& schema, auto& array, auto& stream) { return to_dlpack(schema, array, stream); });
  exchange_tensor<LegacyDlpackTensor>(
      run, "legacy DLPack", backend, consumer, {}, [](auto& schema, auto& array, auto& stream) {
        return to_legacy_dlpack(schema, array, stream, {.read_only = false});
      });
}

void exchange_cuda_arrays(Run& run, const std::string& backend, const Consumer& consumer) {
  if (!backend.starts_with("cuda")) return;
  CudaExchange exchange(run, backend, consumer);
  exchange.with_own_stream();
  exchange.with_given_stream();
  exchange.without_a_stream();
}

}  // namespace fletching::faults
