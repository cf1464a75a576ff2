// SPDX-License-Identifier: Apache-2.0
// Engine operations on streams, events and stream work.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <utility>

#include "engine.hpp"
#include "mode.hpp"

namespace fletching::standin {
namespace {

// The two handles that the headers define as numbers; the same in CUDA and HIP.
const void* const kLegacyHandle = reinterpret_cast<const void*>(std::uintptr_t{1});
const void* const kPerThreadHandle = reinterpret_cast<const void*>(std::uintptr_t{2});

// One thread's default streams, by context; they end with the thread.
struct ThreadStreams {
  std::map<std::weak_ptr<Context>, std::shared_ptr<Stream>, std::owner_less<>> streams;

  ThreadStreams() = default;
  ThreadStreams(const ThreadStreams&) = delete;
  ThreadStreams& operator=(const ThreadStreams&) = delete;
  ~ThreadStreams() {
    for (const auto& [context, stream] : streams) {
      engine().captures.drop(*stream);
      stream->close();
    }
    over = true;
  }

  static thread_local bool over;  // may be read after destruction
};
thread_local bool ThreadStreams::over = false;

std::shared_ptr<Stream> per_thread_stream(const std::shared_ptr<Context>& context) {
  static thread_local ThreadStreams of_thread;
  if (ThreadStreams::over) return context->legacy_stream();
  std::shared_ptr<Stream>& stream = of_thread.streams[context];
  if (!stream) stream = context->make_stream(StreamKind::kBlocking);
  return stream;
}

bool holds(const Gate& gate, std::uint32_t word) {
  const std::uint32_t masked = word & gate.mask;
  switch (gate.condition) {
    case Condition::kGreaterOrEqual:
      return masked >= gate.value;
    case Condition::kGreaterOrEqualSigned:
      return static_cast<std::int32_t>(masked - gate.value) >= 0;
    case Condition::kEqual:
      return masked == gate.value;
    case Condition::kAnd:
      return (masked & gate.value) != 0;
    case Condition::kNor:
      return ~(masked | gate.value) != 0;
  }
  return false;
}

// A driver stages pageable memory, may treat managed memory as host memory, and copies between host
// memory on the calling thread.
bool may_block(const Span& source, const Span& target) {
  const auto is = [](const Span& span, MemoryKind kind) { return span.kind() == kind; };
  if (source.pageable() || target.pageable()) return true;
  if (is(source, MemoryKind::kManaged) || is(target, MemoryKind::kManaged)) return true;
  return !is(source, MemoryKind::kDevice) && !is(target, MemoryKind::kDevice);
}

// A distinct number for each pair of memory kinds.
int kind_of_copy(const Span& source, const Span& target) {
  constexpr int kKinds = 5;
  const auto number = [](const Span& span) {
    return span.kind() ? static_cast<int>(*span.kind()) + 1 : 0;
  };
  return number(source) * kKinds + number(target);
}

// A gate in freed memory counts as open.
bool is_shut(const Gate& gate, const Span& word) {
  try {
    std::shared_ptr<Allocation> owner;
    const std::atomic_ref value(*reinterpret_cast<std::uint32_t*>(word.pin(owner)));
    return !holds(gate, value.load(std::memory_order_acquire));
  } catch (const Failure&) {
    return false;
  }
}

// Writes an aligned word in one step, because another stream may be waiting for its value.
void put(std::byte* into, const std::byte* from, std::size_t size) {
  if (size == sizeof(std::uint32_t) && reinterpret_cast<std::uintptr_t>(into) % size == 0) {
    std::uint32_t word = 0;
    std::memcpy(&word, from, sizeof(word));
    std::atomic_ref(*reinterpret_cast<std::uint32_t*>(into)).store(word, std::memory_order_release);
    return;
  }
  std::memmove(into, from, size);
}

}  // namespace

void* Engine::create_stream(const std::shared_ptr<Context>& context, bool non_blocking) {
  context->check();
  return handles.add(
      context->make_stream(non_blocking ? StreamKind::kNonBlocking : StreamKind::kBlocking));
}

// The stream's remaining work continues.
void Engine::destroy_stream(const void* handle) {
  const auto stream = handles.take<Stream>(handle);
  require(stream != nullptr, Status::kInvalidHandle);
  captures.drop(*stream);
  stream->close();
  stream->context()->check();
}

std::shared_ptr<Stream> Engine::stream(const void* handle, DefaultStream null_means,
                                       const std::shared_ptr<Context>& current) {
  const bool legacy =
      handle == kLegacyHandle || (handle == nullptr && null_means == DefaultStream::kLegacy);
  const bool per_thread = handle == kPerThreadHandle || (handle == nullptr && !legacy);
  if (legacy || per_thread) {
    require(current != nullptr, Status::kInvalidContext);
    current->check();
    return legacy ? current->legacy_stream() : per_thread_stream(current);
  }
  auto found = handles.find<Stream>(handle);
  require(found != nullptr, Status::kInvalidHandle);
  found->context()->check();
  return found;
}

void* Engine::create_event(std::shared_ptr<Context> context, bool timing) {
  context->check();
  return handles.add(std::make_shared<Event>(std::move(context), timing));
}

std::shared_ptr<Event> Engine::event(const void* handle) {
  auto found = handles.find<Event>(handle);
  require(found != nullptr, Status::kInvalidHandle);
  return found;
}

void Engine::destroy_event(const void* handle) {
  const auto event = handles.take<Event>(handle);
  require(event != nullptr, Status::kInvalidHandle);
  captures.forget(*event);
  event->context->check();
}

void Engine::record(const void* handle, Stream& stream, bool external) {
  const auto found = event(handle);
  found->context->check();
  require(found->context == stream.context(), Status::kInvalidHandle);
  if (external) {
    require(captures.add(stream, {.work = nullptr, .record = handle}), Status::kInvalidValue);
  } else if (!captures.record(stream, *found)) {
    captures.forget(*found);
    found->record(stream);
  }
}

void Engine::wait_on(Stream& stream, const void* handle, bool external) {
  const auto found = event(handle);
  found->context->check();
  if (external) {
    require(captures.add(stream, {.work = nullptr, .wait = handle}), Status::kInvalidValue);
    return;
  }
  if (captures.wait_on(stream, *found)) return;
  const MarkerPtr point = found->point();
  Operation wait;
  if (point) wait.after.push_back(point);
  stream.enqueue(std::move(wait));
}

void Engine::query(Event& event) {
  captures.refuse_captured(event);
  captures.refuse_unsafe();
  const MarkerPtr point = event.point();
  const bool pending = point && !point->reached();
  event.context->check();
  require(!pending, Status::kNotReady);
}

void Engine::synchronize(Event& event) {
  captures.refuse_captured(event);
  captures.refuse_unsafe();
  if (const MarkerPtr point = event.point()) point->wait();
  event.context->check();
}

float Engine::elapsed_milliseconds(Event& from, Event& to) {
  require(from.timing && to.timing && from.context == to.context, Status::kInvalidHandle);
  const MarkerPtr begin = from.point();
  const MarkerPtr end = to.point();
  require(begin != nullptr && end != nullptr, Status::kInvalidHandle);
  query(from);
  query(to);
  return std::chrono::duration<float, std::milli>(end->at() - begin->at()).count();
}

void Engine::query(Stream& stream) {
  captures.refuse_captured(stream);
  const auto points = stream.context()->tails(stream);
  const bool done = std::ranges::all_of(points, [](const auto& each) { return each->reached(); });
  stream.context()->check();
  require(done, Status::kNotReady);
}

void Engine::synchronize(Stream& stream) {
  captures.refuse_captured(stream);
  for (const MarkerPtr& point : stream.context()->tails(stream)) point->wait();
  stream.context()->check();
}

std::uintptr_t Engine::allocate(MemoryKind kind, std::size_t size,
                                std::shared_ptr<Context> context) {
  captures.refuse_unsafe();
  settle(*context);
  return memory.allocate(kind, size, std::move(context));
}

void Engine::settle(const Context& context) {
  if (!as_driver()) return;
  for (const auto& each : contexts_of(context.device())) {
    for (const MarkerPtr& point : each->all_tails()) point->wait();
  }
}

void Engine::free(std::uintptr_t address, bool host) {
  captures.refuse_unsafe();
  const auto found = memory.find(address);
  if (found) settle(*found->context);
  memory.take(address, host)->context->check();
}

// As the vendors document: on return, a source in pageable memory has been read and a destination
// there is complete.
void Engine::copy(Stream& stream, std::uintptr_t to, std::uintptr_t from, std::size_t size) {
  if (size == 0) return;
  const Span target = memory.span(to, size);
  const Span source = memory.span(from, size);
  // The copy would have to be complete on return, which a capture cannot do.
  const bool blocks = target.pageable() || (as_driver() && may_block(source, target));
  if (source.pageable() || blocks) captures.refuse_captured(stream);
  if (as_driver() && stream.context()->is_first(kind_of_copy(source, target))) {
    settle(*stream.context());
  }
  std::shared_ptr<std::vector<std::byte>> staged;
  if (source.pageable()) {
    std::shared_ptr<Allocation> owner;
    const std::byte* bytes = source.pin(owner);
    staged = std::make_shared<std::vector<std::byte>>(bytes, bytes + size);
  }
  Operation operation;
  operation.work = [=](Context&) {
    std::shared_ptr<Allocation> target_owner;
    std::shared_ptr<Allocation> source_owner;
    std::byte* into = target.pin(target_owner);
    put(into, staged ? staged->data() : source.pin(source_owner), size);
  };
  const MarkerPtr done = submit(stream, std::move(operation));
  if (!blocks) return;
  done->wait();
  stream.context()->check();
}

void Engine::fill(Stream& stream, std::uintptr_t to, std::uint8_t value, std::size_t size) {
  if (size == 0) return;
  const Span target = memory.span(to, size);
  require(!target.pageable(), Status::kInvalidValue);
  Operation operation;
  operation.work = [=](Context&) {
    std::shared_ptr<Allocation> owner;
    std::memset(target.pin(owner), value, size);
  };
  submit(stream, std::move(operation));
}

void Engine::wait_value(Stream& stream, Gate gate) {
  require(gate.address % sizeof(std::uint32_t) == 0, Status::kInvalidValue);
  const Span word = memory.span(gate.address, sizeof(std::uint32_t));
  require(!word.pageable(), Status::kInvalidValue);
  Operation operation;
  operation.shut = [=] { return is_shut(gate, word); };
  operation.work = [=](Context&) {
    std::shared_ptr<Allocation> owner;
    word.pin(owner);  // fails if the word was freed
  };
  submit(stream, std::move(operation));
}

MarkerPtr Engine::submit(Stream& stream, Operation operation) {
  if (captures.add(stream, {.work = operation.work})) return operation.done;
  return stream.enqueue(std::move(operation));
}

// Streams are checked one by one, so an operation completed in between may have unblocked another.
bool Engine::settled() {
  const std::uint64_t before = operations_done();
  for (int device = 0; device < device_count(); ++device) {
    for (const auto& each : contexts_of(device)) {
      if (!each->settled()) return false;
    }
  }
  return operations_done() == before;
}

void* Engine::load_module(const void* image, std::shared_ptr<Context> context) {
  captures.refuse_unsafe();
  context->check();
  settle(*context);
  return handles.add(load_image(image, std::move(context)));
}

void Engine::unload_module(const void* handle) {
  captures.refuse_unsafe();
  const auto module = handles.take<Module>(handle);
  require(module != nullptr, Status::kInvalidHandle);
  settle(*module->context);
  handles.drop([&](const Object& object) {
    const auto* each = std::get_if<std::shared_ptr<Function>>(&object);
    return each && (*each)->module.lock() == module;
  });
  module->context->check();
}

void* Engine::function(const void* module, const char* name) {
  require(name != nullptr, Status::kInvalidValue);
  const auto found = handles.find<Module>(module);
  require(found != nullptr, Status::kInvalidHandle);
  found->context->check();
  const Kernel* kernel = find_kernel(*found, name);
  require(kernel != nullptr, Status::kNotFound);
  return handles.add(std::make_shared<Function>(found, kernel));
}

void Engine::launch(const void* function, Stream& stream, std::uint64_t threads, void** arguments) {
  const auto found = handles.find<Function>(function);
  const auto module = found ? found->module.lock() : nullptr;
  require(module != nullptr, Status::kInvalidHandle);
  require(module->context == stream.context(), Status::kInvalidHandle);
  Operation operation;
  operation.work = standin::launch(*found->kernel, threads, arguments, memory);
  if (loads_lazily() && !found->launched.exchange(true)) settle(*module->context);
  submit(stream, std::move(operation));
}

void* Engine::end_capture(Stream& stream) {
  return handles.add(std::make_shared<Graph>(captures.end(stream)));
}

void* Engine::instantiate(const void* graph) {
  const auto found = handles.find<Graph>(graph);
  require(found != nullptr, Status::kInvalidValue);
  return handles.add(std::make_shared<GraphExec>(GraphExec{found->nodes}));
}

// A node whose event was destroyed makes the launch fail; a real driver may crash.
void Engine::launch(const void* executable, Stream& stream) {
  const auto found = handles.find<GraphExec>(executable);
  require(found != nullptr, Status::kInvalidValue);
  captures.refuse_captured(stream);
  for (const GraphNode& node : found->nodes) {
    for (const void* handle : {node.record, node.wait}) {
      if (handle != nullptr) event(handle)->context->check();
    }
  }
  for (const GraphNode& node : found->nodes) {
    if (node.record != nullptr) {
      record(node.record, stream, false);
    } else if (node.wait != nullptr) {
      wait_on(stream, node.wait, false);
    } else {
      Operation operation;
      operation.work = node.work;
      stream.enqueue(std::move(operation));
    }
  }
}

void Engine::destroy_graph(const void* graph) {
  require(handles.take<Graph>(graph) != nullptr, Status::kInvalidValue);
}

void Engine::destroy_executable(const void* executable) {
  require(handles.take<GraphExec>(executable) != nullptr, Status::kInvalidValue);
}

}  // namespace fletching::standin
