// SPDX-License-Identifier: Apache-2.0
//
// libfletching_gpu_peers: what peers.py calls by ctypes. Data of ours behind a gate as DLPack and
// as CUDA Array Interface, and tensors of other libraries taken in and read. Functions return 0 or
// an errno value with its text in `message`; nothing throws. All are called by one thread.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "fletching/cuda_array.hpp"
#include "fletching/detail/message.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/dlpack_stream.hpp"

#define FLETCHING_GPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace fletching::gpu {
namespace {

/// The streams of the consumer: one that is passed to other libraries, one that reads. They live as
/// long as the process, and so does their context, which stays current.
struct Consumer {
  Current current;
  Stream passed;
  Stream reader;
};

Consumer& consumer() {
  static auto& consumer = *new Consumer();
  return consumer;
}

template <class Work>
int call(FletchingMessage* message, const Work& work) noexcept {
  std::string text;
  const int code = guarded(text, [&] {
    static_cast<void>(consumer());
    work();
  });
  detail::write_message(message, text);
  return code;
}

template <class T>
T require(Result<T> result) {
  if (!result) fail(result.error().code(), result.error().message());
  return *std::move(result);
}

void require(const Status& status) {
  if (!status) fail(status.error().code(), status.error().message());
}

/// Reads an array of int32 behind its event, and compares. Returns how many.
std::int64_t read(ImportedTensor imported, std::int32_t expected) {
  const DeviceArray& array = imported.array;
  const std::int64_t length = array->array.length;
  if (std::string(imported.schema->format) != "i") {
    fail(EBADMSG, "the format is " + std::string(imported.schema->format) + ", expected i");
  }
  const PinnedMemory seen(static_cast<std::size_t>(length) * sizeof(std::int32_t));
  auto* stream = static_cast<cuda::CUstream>(consumer().reader.get());
  require(SyncEvent(array).wait_on({ARROW_DEVICE_CUDA, stream}));
  const auto* first = static_cast<const std::int32_t*>(array->array.buffers[1]);
  require_call("cuMemcpyDtoHAsync",
               cu().cu_memcpy_dtoh_async(
                   seen.get(), reinterpret_cast<cuda::CUdeviceptr>(first + array->array.offset),
                   static_cast<std::size_t>(length) * sizeof(std::int32_t), stream));
  consumer().reader.synchronize();
  const auto* values = static_cast<const std::int32_t*>(seen.get());
  const auto* wrong =
      std::find_if(values, values + length, [&](std::int32_t value) { return value != expected; });
  if (wrong != values + length) {
    fail(EBADMSG, "value " + std::to_string(wrong - values) + " is " + std::to_string(*wrong) +
                      ", expected " + std::to_string(expected));
  }
  return length;
}

/// Calls `release` in the destructor: the object of the other library may be destroyed then.
struct Kept {
  void operator()(void (*release)()) const { release(); }
};
using Keeper = std::unique_ptr<void(), Kept>;

}  // namespace

/// Data behind a gate, and the arrays made of it.
struct Source {
  Gated gated;
  Schema schema = int32_schema();
  int made = 0;
  std::vector<CudaArray> described;

  DeviceArray array() {
    Asserter asserter;
    DeviceArray array = gated.array_with_event(asserter);
    ++made;
    return array;
  }
};

}  // namespace fletching::gpu

using namespace fletching;
using namespace fletching::gpu;

/// "real" or "stand-in" in `message`.
FLETCHING_GPU_EXPORT int FletchingGpuStatus(FletchingMessage* message) {
  int code = call(message, [] {});
  if (code != 0) return code;
  const auto library = find_library(cuda::kRuntime);
  const bool stand_in = library && find_symbol(library->handle, "FletchingStandinCalls") != nullptr;
  detail::write_message(message, stand_in ? "stand-in" : "real");
  return 0;
}

/// The stream that is passed to another library when its data is imported here.
FLETCHING_GPU_EXPORT std::intptr_t FletchingGpuStream(void) {
  return reinterpret_cast<std::intptr_t>(consumer().passed.get());
}

/// kBytes of int32, with new data behind a shut gate. The caller deletes it.
FLETCHING_GPU_EXPORT int FletchingGpuSourceNew(Source** source, FletchingMessage* message) {
  return call(message, [&] { *source = std::make_unique<Source>().release(); });
}

FLETCHING_GPU_EXPORT void FletchingGpuSourceOpen(Source* source) { source->gated.open(); }

/// Opens the gate, and blocks until the new data are there: for a library that orders nothing.
FLETCHING_GPU_EXPORT int FletchingGpuSourceFinish(Source* source, FletchingMessage* message) {
  return call(message, [&] {
    source->gated.open();
    source->gated.producer().synchronize();
  });
}

/// Opens the gate, and fails when something that was made of it is not released.
FLETCHING_GPU_EXPORT int FletchingGpuSourceDelete(Source* source, FletchingMessage* message) {
  return call(message, [&] {
    source->gated.open();
    source->described.clear();
    if (!source->gated.releases().wait_for(source->made)) {
      fail(EBADMSG, "an array was not released");  // and its memory stays: somebody may use it
    }
    const int releases = source->gated.releases().count();
    const int made = source->made;
    const std::unique_ptr<Source> last(source);
    if (releases != made) {
      fail(EBADMSG, std::to_string(releases) + " releases of " + std::to_string(made) + " arrays");
    }
  });
}

/// A tensor for `stream`, as __dlpack__ gets it; `stream` is NULL for None.
FLETCHING_GPU_EXPORT int FletchingGpuSourceToDlpack(Source* source, const std::int64_t* stream,
                                                    int legacy, void** tensor,
                                                    FletchingMessage* message) {
  return call(message, [&] {
    const ConsumerStream ordered = require(read_dlpack_stream(
        ARROW_DEVICE_CUDA, stream != nullptr ? std::optional(*stream) : std::nullopt));
    DeviceArray array = source->array();
    const DlpackExportOptions options{.read_only = false};
    *tensor =
        legacy != 0
            ? static_cast<void*>(
                  require(to_legacy_dlpack(*source->schema, array, ordered, options)).detach())
            : static_cast<void*>(
                  require(to_dlpack(*source->schema, array, ordered, options)).detach());
  });
}

/// For a tensor that was not taken out of its capsule.
FLETCHING_GPU_EXPORT void FletchingGpuDropTensor(void* tensor, int legacy) {
  if (legacy != 0) {
    const LegacyDlpackTensor dropped(static_cast<DLManagedTensor*>(tensor));
  } else {
    const DlpackTensor dropped(static_cast<DLManagedTensorVersioned*>(tensor));
  }
}

/// "data" and "stream" of a description; it lives as long as the source.
FLETCHING_GPU_EXPORT int FletchingGpuSourceToCudaArray(Source* source, std::uint64_t* pointer,
                                                       std::int64_t* stream,
                                                       FletchingMessage* message) {
  return call(message, [&] {
    DeviceArray array = source->array();
    CudaArray described = require(to_cuda_array(*source->schema, array, {}, {.read_only = false}));
    const cuda_array_interface::Interface& says = described.array_interface();
    if (!says.stream) fail(EBADMSG, "no stream is named, and there is an event");
    *pointer = says.pointer;
    *stream = *says.stream;
    source->described.push_back(std::move(described));
  });
}

/// Takes a tensor that was made for FletchingGpuStream, in any case, and reads it.
FLETCHING_GPU_EXPORT int FletchingGpuTakeDlpack(void* tensor, int legacy, std::int32_t expected,
                                                std::int64_t* compared, FletchingMessage* message) {
  return call(message, [&] {
    auto* const handle = reinterpret_cast<void*>(static_cast<std::uintptr_t>(FletchingGpuStream()));
    const ConsumerStream passed{Ordering::kStream, {ARROW_DEVICE_CUDA, handle}};
    auto imported =
        legacy != 0
            ? from_dlpack(LegacyDlpackTensor(static_cast<DLManagedTensor*>(tensor)), passed)
            : from_dlpack(DlpackTensor(static_cast<DLManagedTensorVersioned*>(tensor)), passed);
    *compared = read(require(std::move(imported)), expected);
  });
}

/// Takes a description of one dimension without strides; `release` is called, once, when its memory
/// is not needed any more. `stream` is NULL for None.
FLETCHING_GPU_EXPORT int FletchingGpuTakeCudaArray(std::uint64_t pointer, std::int64_t length,
                                                   const char* typestr, const std::int64_t* stream,
                                                   void (*release)(), std::int32_t expected,
                                                   std::int64_t* compared,
                                                   FletchingMessage* message) {
  return call(message, [&] {
    cuda_array_interface::Interface says;
    says.shape = {&length, 1};
    says.typestr = typestr;
    says.pointer = pointer;
    if (stream != nullptr) says.stream = *stream;
    *compared = read(require(from_cuda_array(says, Keeper(release))), expected);
  });
}
