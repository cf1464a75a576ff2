// SPDX-License-Identifier: Apache-2.0
// The runtime shared by the CUDA and HIP stand-ins: devices, current contexts, and the vendors'
// functions. Every function throws Failure; each stand-in wraps it in call().
#ifndef FLETCHING_STANDIN_ENGINE_HPP
#define FLETCHING_STANDIN_ENGINE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "../standin.h"
#include "capture.hpp"
#include "context.hpp"
#include "faults.hpp"
#include "handles.hpp"
#include "kernels.hpp"
#include "memory.hpp"

namespace fletching::standin {

// The stream that a NULL handle means. CUDA and HIP have two variants of each function with one.
enum class DefaultStream { kLegacy, kPerThread };

enum class Condition { kGreaterOrEqual, kGreaterOrEqualSigned, kEqual, kAnd, kNor };

// The memory word that a stream waits for at a gate.
struct Gate {
  std::uintptr_t address;
  std::uint32_t value;
  std::uint32_t mask;
  Condition condition;
};

class Engine {
 public:
  Engine();

  Handles handles;
  Memory memory;
  Faults faults;
  Captures captures;

  // Devices. A negative or too large ordinal fails with kInvalidDevice.
  int device_count() const { return static_cast<int>(devices_.size()); }
  void check_device(int device) const;
  bool primary_active(int device);
  std::shared_ptr<Context> retain_primary(int device, bool counted = true);
  void release_primary(int device);
  // Ends the primary context regardless of its references, which stay counted.
  void reset_primary(int device);
  void lose_device(int device, int error);
  void restore_device(int device);

  // Contexts, known by their handles.
  void* handle_of(const std::shared_ptr<Context>& context);
  std::shared_ptr<Context> context(const void* handle);
  void* create_context(int device);
  void destroy_context(const void* handle);

  // Streams and events. The handle of a default stream needs a current context; `current` may be
  // NULL for other handles.
  void* create_stream(const std::shared_ptr<Context>& context, bool non_blocking);
  void destroy_stream(const void* handle);
  std::shared_ptr<Stream> stream(const void* handle, DefaultStream null_means,
                                 const std::shared_ptr<Context>& current);
  void* create_event(std::shared_ptr<Context> context, bool timing);
  std::shared_ptr<Event> event(const void* handle);
  void destroy_event(const void* handle);
  // Take the event's handle, because graph nodes keep it. `external` fails with kInvalidValue
  // unless the stream is captured.
  void record(const void* event, Stream& stream, bool external);
  void wait_on(Stream& stream, const void* event, bool external);
  void query(Event& event);        // throws kNotReady
  void synchronize(Event& event);  // blocks
  float elapsed_milliseconds(Event& from, Event& to);
  void query(Stream& stream);
  void synchronize(Stream& stream);

  // In `driver` mode, both first wait for all work on the device. `host`: whether the memory is
  // pinned.
  std::uintptr_t allocate(MemoryKind kind, std::size_t size, std::shared_ptr<Context> context);
  void free(std::uintptr_t address, bool host);

  // Work. In `driver` mode, a copy waits for its stream unless it is between device memory and
  // pinned memory; the first copy of a kind and the first launch of a kernel wait for the device.
  void copy(Stream& stream, std::uintptr_t to, std::uintptr_t from, std::size_t size);
  void fill(Stream& stream, std::uintptr_t to, std::uint8_t value, std::size_t size);
  void wait_value(Stream& stream, Gate gate);
  void* load_module(const void* image, std::shared_ptr<Context> context);
  void unload_module(const void* handle);
  void* function(const void* module, const char* name);
  void launch(const void* function, Stream& stream, std::uint64_t threads, void** arguments);

  // Whether no stream can proceed: each is done, waits at a shut gate, or waits for a stream that
  // cannot proceed.
  bool settled();

  // Graphs.
  void* end_capture(Stream& stream);
  void* instantiate(const void* graph);
  void launch(const void* executable, Stream& stream);
  void destroy_graph(const void* graph);
  void destroy_executable(const void* executable);

  FletchingStandinCounts counts();
  std::string report();

 private:
  struct Device {
    std::shared_ptr<Context> primary;
    const void* handle = nullptr;  // shared by all primary contexts of the device so far
    std::int64_t references = 0;
    Status lost = Status::kSuccess;
  };
  void end(const std::shared_ptr<Context>& context);
  // In `driver` mode, blocks until all work on the device is done.
  void settle(const Context& context);
  // Adds to the stream, or to the graph into which it is captured.
  MarkerPtr submit(Stream& stream, Operation operation);
  std::vector<std::shared_ptr<Context>> contexts_of(int device);
  void add_environment_faults();

  std::mutex mutex_;
  std::vector<Device> devices_;
  std::int64_t abandoned_ = 0;
};

// Never destroyed: the threads of the streams outlive main().
Engine& engine();

// The thread's stack of current contexts, topmost last.
std::vector<std::shared_ptr<Context>>& current_contexts();

std::string device_name(int device);

// Counts the call, injects a fault if one is due, and returns the result of `work` as a vendor
// error number.
template <class Work>
int call(const char* function, Work work) noexcept {
  try {
    if (const std::optional<int> fault = engine().faults.count(function)) return *fault;
    work();
    return static_cast<int>(Status::kSuccess);
  } catch (const Failure& failure) {
    return static_cast<int>(failure.status);
  } catch (const std::bad_alloc&) {
    return static_cast<int>(Status::kOutOfMemory);
  } catch (...) {
    return static_cast<int>(Status::kUnknown);
  }
}

// Like call(), for a function that frees something: it frees even if a fault is injected. The real
// function also frees when it returns the error of earlier work; otherwise the object would leak.
template <class Work>
int call_freeing(const char* function, Work work) noexcept {
  std::optional<int> fault;
  const int result = call(function, [] {});
  if (result != 0) fault = result;
  try {
    work();
  } catch (const Failure& failure) {
    return fault.value_or(static_cast<int>(failure.status));
  } catch (...) {
    return fault.value_or(static_cast<int>(Status::kUnknown));
  }
  return fault.value_or(static_cast<int>(Status::kSuccess));
}

}  // namespace fletching::standin

#endif  // FLETCHING_STANDIN_ENGINE_HPP
