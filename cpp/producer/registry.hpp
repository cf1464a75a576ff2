// What is alive: every exported struct by number, and the counters.
//
// The private_data of an exported struct is a number that is never used again, not an address. So a
// struct released twice is found out and counted where an address would be freed memory.
#pragma once

#include <memory>

#include "backend.hpp"
#include "producer.h"

namespace fletching::producer {

enum class Kind { kSchema, kArray, kStream };

// Keeps `state` until Unregister, and returns the private_data of the struct.
void* Register(Kind kind, std::shared_ptr<void> state);

// NULL when no such struct is alive.
std::shared_ptr<void> Find(Kind kind, const void* private_data) noexcept;

// Hands the state back to be destroyed by the caller, outside the lock. NULL, and a double release
// counted, when no such struct is alive.
std::shared_ptr<void> Unregister(Kind kind, const void* private_data) noexcept;

// A buffer that a backend allocated, for as long as it is alive. `origin`: the bytes of the
// catalogue that were copied into it.
void AddAllocation(const void* buffer, const void* origin);
void RemoveAllocation(const void* buffer) noexcept;
// NULL when no such buffer is alive.
const void* OriginOf(const void* buffer) noexcept;

// An event that was given out as a sync_event, for as long as it is alive. It counts as an
// allocation.
void AddEvent(Event* event);
void RemoveEvent(Event* event) noexcept;
// NULL when no such event is alive.
Event* FindEvent(const void* sync_event) noexcept;

FletchingProducerCounters ReadCounters() noexcept;
void ResetCounters() noexcept;

}  // namespace fletching::producer
