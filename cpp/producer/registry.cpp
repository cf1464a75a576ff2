#include "registry.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <unordered_map>

namespace fletching::producer {
namespace {

struct Entry {
  Kind kind;
  std::shared_ptr<void> state;
};

struct Registry {
  std::mutex mutex;
  std::unordered_map<uintptr_t, Entry> entries;
  std::unordered_map<const void*, const void*> allocations;  // to their origins
  std::unordered_map<const void*, Event*> events;            // by address
  uintptr_t last_number = 0;
  FletchingProducerCounters counters{};
};

// Never destroyed: foreign code may release a struct while the process ends. In place: cannot fail.
Registry& TheRegistry() {
  alignas(Registry) static std::byte storage[sizeof(Registry)];
  static auto* registry = new (storage) Registry;
  return *registry;
}

int64_t& Live(FletchingProducerCounters& counters, Kind kind) {
  switch (kind) {
    case Kind::kSchema:
      return counters.live_schemas;
    case Kind::kArray:
      return counters.live_arrays;
    case Kind::kStream:
      break;
  }
  return counters.live_streams;
}

}  // namespace

void* Register(Kind kind, std::shared_ptr<void> state) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const uintptr_t number = registry.last_number + 1;
  registry.entries.try_emplace(number, Entry{kind, std::move(state)});
  registry.last_number = number;
  ++registry.counters.exported;
  ++Live(registry.counters, kind);
  return reinterpret_cast<void*>(number);
}

std::shared_ptr<void> Find(Kind kind, const void* private_data) noexcept {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.entries.find(reinterpret_cast<uintptr_t>(private_data));
  if (found == registry.entries.end() || found->second.kind != kind) return nullptr;
  return found->second.state;
}

std::shared_ptr<void> Unregister(Kind kind, const void* private_data) noexcept {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.entries.find(reinterpret_cast<uintptr_t>(private_data));
  if (found == registry.entries.end() || found->second.kind != kind) {
    ++registry.counters.double_released;
    return nullptr;
  }
  std::shared_ptr<void> state = std::move(found->second.state);
  registry.entries.erase(found);
  ++registry.counters.released;
  --Live(registry.counters, kind);
  return state;
}

void AddAllocation(const void* buffer, const void* origin) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.allocations.emplace(buffer, origin);
  ++registry.counters.live_allocations;
}

void RemoveAllocation(const void* buffer) noexcept {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.allocations.erase(buffer);
  --registry.counters.live_allocations;
}

const void* OriginOf(const void* buffer) noexcept {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.allocations.find(buffer);
  return found == registry.allocations.end() ? nullptr : found->second;
}

void AddEvent(Event* event) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.events.emplace(event->Address(), event);
  ++registry.counters.live_allocations;
}

void RemoveEvent(Event* event) noexcept {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.events.erase(event->Address());
  --registry.counters.live_allocations;
}

Event* FindEvent(const void* sync_event) noexcept {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.events.find(sync_event);
  return found == registry.events.end() ? nullptr : found->second;
}

FletchingProducerCounters ReadCounters() noexcept {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  return registry.counters;
}

void ResetCounters() noexcept {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  FletchingProducerCounters& counters = registry.counters;
  counters.exported = counters.live_schemas + counters.live_arrays + counters.live_streams;
  counters.released = 0;
  counters.double_released = 0;
}

}  // namespace fletching::producer
