// SPDX-License-Identifier: Apache-2.0
// The runtime behind both faces: devices, current contexts, and what the vendors' functions do.
// Everything here throws Failure; call() is what the faces wrap each function in.
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

// Which stream a NULL handle means: CUDA and HIP have two variants of each function that takes one.
enum class DefaultStream { kLegacy, kPerThread };

enum class Condition { kGreaterOrEqual, kGreaterOrEqualSigned, kEqual, kAnd, kNor };

// What a stream waits for at a gate.
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

  // Devices. A negative or too large ordinal is kInvalidDevice.
  int device_count() const { return static_cast<int>(devices_.size()); }
  void check_device(int device) const;
  bool primary_active(int device);
  std::shared_ptr<Context> retain_primary(int device, bool counted = true);
  void release_primary(int device);
  // Ends it whatever references there are; they stay.
  void reset_primary(int device);
  void lose_device(int device, int error);
  void restore_device(int device);

  // Contexts. A context is known by its handle.
  void* handle_of(const std::shared_ptr<Context>& context);
  std::shared_ptr<Context> context(const void* handle);
  void* create_context(int device);
  void destroy_context(const void* handle);

  // Streams and events. A stream handle may be that of a default stream; those need a current
  // context, `current`, which may be NULL for the others.
  void* create_stream(const std::shared_ptr<Context>& context, bool non_blocking);
  void destroy_stream(const void* handle);
  std::shared_ptr<Stream> stream(const void* handle, DefaultStream null_means,
                                 const std::shared_ptr<Context>& current);
  void* create_event(std::shared_ptr<Context> context, bool timing);
  std::shared_ptr<Event> event(const void* handle);
  void destroy_event(const void* handle);
  // By the handle of the event, which a node of a graph keeps. External: kInvalidValue unless the
  // stream is captured.
  void record(const void* event, Stream& stream, bool external);
  void wait_on(Stream& stream, const void* event, bool external);
  void query(Event& event);        // throws kNotReady
  void synchronize(Event& event);  // blocks
  float elapsed_milliseconds(Event& from, Event& to);
  void query(Stream& stream);
  void synchronize(Stream& stream);

  // As a driver, both wait for all the work of the device first. `host`: pinned memory, or the
  // other kinds.
  std::uintptr_t allocate(MemoryKind kind, std::size_t size, std::shared_ptr<Context> context);
  void free(std::uintptr_t address, bool host);

  // Work. As a driver, a copy waits for its own stream unless it is one between device memory and
  // pinned memory, and the first copy of a kind and the first launch of a kernel for the device.
  void copy(Stream& stream, std::uintptr_t to, std::uintptr_t from, std::size_t size);
  void fill(Stream& stream, std::uintptr_t to, std::uint8_t value, std::size_t size);
  void wait_value(Stream& stream, Gate gate);
  void* load_module(const void* image, std::shared_ptr<Context> context);
  void unload_module(const void* handle);
  void* function(const void* module, const char* name);
  void launch(const void* function, Stream& stream, std::uint64_t threads, void** arguments);

  // Whether no stream can go on: each is done, or waits at a shut gate or for one that does.
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
    const void* handle = nullptr;  // of every primary context there has been
    std::int64_t references = 0;
    Status lost = Status::kSuccess;
  };
  void end(const std::shared_ptr<Context>& context);
  // As a driver: blocks until everything is done that the device has to do.
  void settle(const Context& context);
  // Adds to the stream, or to the graph that it is captured into.
  MarkerPtr submit(Stream& stream, Operation operation);
  std::vector<std::shared_ptr<Context>> contexts_of(int device);
  void add_environment_faults();

  std::mutex mutex_;
  std::vector<Device> devices_;
  std::int64_t abandoned_ = 0;
};

// Never destroyed: the threads of the streams outlive main().
Engine& engine();

// The contexts that are current for this thread, the last one on top.
std::vector<std::shared_ptr<Context>>& current_contexts();

std::string device_name(int device);

// Counts the call of the function, fails it on demand and returns what `work` does as a number of
// the vendor's.
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

// The same for a function that frees something: it does so even when it fails on demand, as the
// real one, whose error is of earlier work. Otherwise nothing could free it.
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
