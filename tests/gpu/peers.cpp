// SPDX-License-Identifier: Apache-2.0
//
// libfletching_gpu_peers: the functions that peers.py calls through ctypes. Exports gated data as
// DLPack and as CUDA Array Interface, and imports and reads tensors of other libraries. Functions
// return 0, or an errno value with an error in `message`; nothing throws. One thread calls them
// all.
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

/// The consumer's streams: one is passed to other libraries, one reads. They and their context,
/// which stays current, exist until the process ends.
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

/// Reads an int32 array behind its event and compares. Returns the number of values.
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

/// Calls `release` in the destructor, after which the other library may destroy its object.
struct ReleaseCaller {
  void operator()(void (*release)()) const { release(); }
};
using Keeper = std::unique_ptr<void(), ReleaseCaller>;

}  // namespace

/// Data behind a gate, and the arrays made from it.
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

/// Writes "real" or "stand-in" to `message`.
FLETCHING_GPU_EXPORT int FletchingGpuStatus(FletchingMessage* message) {
  int code = call(message, [] {});
  if (code != 0) return code;
  const auto library = find_library(cuda::kRuntime);
  const bool stand_in = library && find_symbol(library->handle, "FletchingStandinCalls") != nullptr;
  detail::write_message(message, stand_in ? "stand-in" : "real");
  return 0;
}

/// The stream to pass to another library when its data is imported here.
FLETCHING_GPU_EXPORT std::intptr_t FletchingGpuStream(void) {
  return reinterpret_cast<std::intptr_t>(consumer().passed.get());
}

/// Makes kBytes of int32 with new data behind a shut gate. The caller must delete it.
FLETCHING_GPU_EXPORT int FletchingGpuSourceNew(Source** source, FletchingMessage* message) {
  return call(message, [&] { *source = std::make_unique<Source>().release(); });
}

FLETCHING_GPU_EXPORT void FletchingGpuSourceOpen(Source* source) { source->gated.open(); }

/// Opens the gate and blocks until the new data is written, for a library without ordering.
FLETCHING_GPU_EXPORT int FletchingGpuSourceFinish(Source* source, FletchingMessage* message) {
  return call(message, [&] {
    source->gated.open();
    source->gated.producer().synchronize();
  });
}

/// Opens the gate. Fails if something made from the source was not released.
FLETCHING_GPU_EXPORT int FletchingGpuSourceDelete(Source* source, FletchingMessage* message) {
  return call(message, [&] {
    source->gated.open();
    source->described.clear();
    if (!source->gated.releases().wait_for(source->made)) {
      fail(EBADMSG, "an array was not released");  // keeps the memory, which may still be in use
    }
    const int releases = source->gated.releases().count();
    const int made = source->made;
    const std::unique_ptr<Source> last(source);
    if (releases != made) {
      fail(EBADMSG, std::to_string(releases) + " releases of " + std::to_string(made) + " arrays");
    }
  });
}

/// Exports a tensor for `stream`, the argument of __dlpack__; `stream` is NULL for None.
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

/// Deletes a tensor that was not taken out of its capsule.
FLETCHING_GPU_EXPORT void FletchingGpuDropTensor(void* tensor, int legacy) {
  if (legacy != 0) {
    const LegacyDlpackTensor dropped(static_cast<DLManagedTensor*>(tensor));
  } else {
    const DlpackTensor dropped(static_cast<DLManagedTensorVersioned*>(tensor));
  }
}

/// Returns "data" and "stream" of a description, which is valid as long as the source.
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

/// Takes ownership of a tensor made for FletchingGpuStream, even on an error, and reads it.
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

/// Takes a description of one dimension without strides. Calls `release` once, when its memory is
/// no longer needed. `stream` is NULL for None.
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
