// The live exported structs by number, and the counters.
//
// The private_data of an exported struct is a number that is never reused, not an address. A double
// release is therefore detected and counted, where an address would point to freed memory.
#ifndef FLETCHING_PRODUCER_REGISTRY_HPP
#define FLETCHING_PRODUCER_REGISTRY_HPP

#include <memory>

#include "backend.hpp"
#include "producer.h"

namespace fletching::producer {

enum class Kind { kSchema, kArray, kStream };

// Keeps `state` until unregister_struct. Returns the private_data of the struct.
void* register_struct(Kind kind, std::shared_ptr<void> state);

// Returns NULL if no such struct is alive.
std::shared_ptr<void> find(Kind kind, const void* private_data) noexcept;

// Returns the state, so that the caller destroys it outside the lock. If no such struct is alive,
// counts a double release and returns NULL.
std::shared_ptr<void> unregister_struct(Kind kind, const void* private_data) noexcept;

// Registers a buffer that a backend has allocated. `origin`: the catalogue bytes copied into it.
void add_allocation(const void* buffer, const void* origin);
void remove_allocation(const void* buffer) noexcept;
// Returns NULL if no such buffer is alive.
const void* origin_of(const void* buffer) noexcept;

// Registers an event exported as a sync_event. It counts as an allocation.
void add_event(Event* event);
void remove_event(Event* event) noexcept;
// Returns NULL if no such event is alive.
Event* find_event(const void* sync_event) noexcept;

FletchingProducerCounters read_counters() noexcept;
void reset_counters() noexcept;

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_REGISTRY_HPP
