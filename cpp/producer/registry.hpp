// What is alive: every exported struct by number, and the counters.
//
// The private_data of an exported struct is a number that is never used again, not an address. So a
// struct released twice is found out and counted where an address would be freed memory.
#ifndef FLETCHING_PRODUCER_REGISTRY_HPP
#define FLETCHING_PRODUCER_REGISTRY_HPP

#include <memory>

#include "backend.hpp"
#include "producer.h"

namespace fletching::producer {

enum class Kind { kSchema, kArray, kStream };

// Keeps `state` until unregister_struct, and returns the private_data of the struct.
void* register_struct(Kind kind, std::shared_ptr<void> state);

// NULL when no such struct is alive.
std::shared_ptr<void> find(Kind kind, const void* private_data) noexcept;

// Hands the state back to be destroyed by the caller, outside the lock. NULL, and a double release
// counted, when no such struct is alive.
std::shared_ptr<void> unregister_struct(Kind kind, const void* private_data) noexcept;

// A buffer that a backend allocated, for as long as it is alive. `origin`: the bytes of the
// catalogue that were copied into it.
void add_allocation(const void* buffer, const void* origin);
void remove_allocation(const void* buffer) noexcept;
// NULL when no such buffer is alive.
const void* origin_of(const void* buffer) noexcept;

// An event that is exported as a sync_event, for as long as it is alive. It counts as an
// allocation.
void add_event(Event* event);
void remove_event(Event* event) noexcept;
// NULL when no such event is alive.
Event* find_event(const void* sync_event) noexcept;

FletchingProducerCounters read_counters() noexcept;
void reset_counters() noexcept;

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_REGISTRY_HPP
