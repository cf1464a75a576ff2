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

// Never destroyed: foreign code may release a struct at process exit. Placement new cannot fail.
Registry& the_registry() {
  alignas(Registry) static std::byte storage[sizeof(Registry)];
  static auto* registry = new (storage) Registry;
  return *registry;
}

int64_t& live(FletchingProducerCounters& counters, Kind kind) {
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

void* register_struct(Kind kind, std::shared_ptr<void> state) {
  Registry& registry = the_registry();
  const std::lock_guard lock(registry.mutex);
  const uintptr_t number = registry.last_number + 1;
  registry.entries.try_emplace(number, Entry{kind, std::move(state)});
  registry.last_number = number;
  ++registry.counters.exported;
  ++live(registry.counters, kind);
  return reinterpret_cast<void*>(number);
}

std::shared_ptr<void> find(Kind kind, const void* private_data) noexcept {
  Registry& registry = the_registry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.entries.find(reinterpret_cast<uintptr_t>(private_data));
  if (found == registry.entries.end() || found->second.kind != kind) return nullptr;
  return found->second.state;
}

std::shared_ptr<void> unregister_struct(Kind kind, const void* private_data) noexcept {
  Registry& registry = the_registry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.entries.find(reinterpret_cast<uintptr_t>(private_data));
  if (found == registry.entries.end() || found->second.kind != kind) {
    ++registry.counters.double_released;
    return nullptr;
  }
  std::shared_ptr<void> state = std::move(found->second.state);
  registry.entries.erase(found);
  ++registry.counters.released;
  --live(registry.counters, kind);
  return state;
}

void add_allocation(const void* buffer, const void* origin) {
  Registry& registry = the_registry();
  const std::lock_guard lock(registry.mutex);
  registry.allocations.emplace(buffer, origin);
  ++registry.counters.live_allocations;
}

void remove_allocation(const void* buffer) noexcept {
  Registry& registry = the_registry();
  const std::lock_guard lock(registry.mutex);
  registry.allocations.erase(buffer);
  --registry.counters.live_allocations;
}

const void* origin_of(const void* buffer) noexcept {
  Registry& registry = the_registry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.allocations.find(buffer);
  return found == registry.allocations.end() ? nullptr : found->second;
}

void add_event(Event* event) {
  Registry& registry = the_registry();
  const std::lock_guard lock(registry.mutex);
  registry.events.emplace(event->address(), event);
  ++registry.counters.live_allocations;
}

void remove_event(Event* event) noexcept {
  Registry& registry = the_registry();
  const std::lock_guard lock(registry.mutex);
  registry.events.erase(event->address());
  --registry.counters.live_allocations;
}

Event* find_event(const void* sync_event) noexcept {
  Registry& registry = the_registry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.events.find(sync_event);
  return found == registry.events.end() ? nullptr : found->second;
}

FletchingProducerCounters read_counters() noexcept {
  Registry& registry = the_registry();
  const std::lock_guard lock(registry.mutex);
  return registry.counters;
}

void reset_counters() noexcept {
  Registry& registry = the_registry();
  const std::lock_guard lock(registry.mutex);
  FletchingProducerCounters& counters = registry.counters;
  counters.exported = counters.live_schemas + counters.live_arrays + counters.live_streams;
  counters.released = 0;
  counters.double_released = 0;
}

}  // namespace fletching::producer
