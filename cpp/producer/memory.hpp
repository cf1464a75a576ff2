// The memory of exported arrays, and the work that fills it.
#ifndef FLETCHING_PRODUCER_MEMORY_HPP
#define FLETCHING_PRODUCER_MEMORY_HPP

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backend.hpp"
#include "catalogue.hpp"

namespace fletching::producer {

// One buffer with its bytes, freed with the object. It remembers which bytes of the catalogue it
// was made from.
class Allocation {
 public:
  // `inverted`: with every bit the other way round.
  Allocation(Backend& backend, const Bytes& bytes, bool inverted);
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  void* buffer() const { return buffer_; }

 private:
  Backend& backend_;
  void* buffer_;
};

class Memory;

// Fills memory: at once where there are no queues; else by work on a queue, which a gate may hold
// back. Until that is done the memory has every bit the other way round.
class Filler {
 public:
  // `shut`: behind a gate that open() opens.
  Filler(Backend& backend, bool shut);
  Filler(const Filler&) = delete;
  Filler& operator=(const Filler&) = delete;

  // The one for what is exported without a gate.
  static std::shared_ptr<Filler> ungated(Backend& backend);

  Backend& backend() const { return backend_; }
  void open();

  // Opens, waits for the work, and lets go of the memory of released arrays.
  void close();

 private:
  friend class Memory;
  friend class Work;

  Backend& backend_;
  std::mutex mutex_;
  std::unique_ptr<Queue> queue_;  // NULL without queues
  std::unique_ptr<Gate> gate_;    // NULL: nothing is held back
  // All that was exported behind the gate: the work on it may still wait when it is released.
  std::vector<std::shared_ptr<Memory>> kept_;
};

// The work on one exported array and everything below it, with its event. It lives until the last
// of these structs is released.
class Work {
 public:
  explicit Work(std::shared_ptr<Filler> filler);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  Backend& backend() const { return filler_->backend(); }

  // Records the event after everything that was added, and returns its address: NULL without
  // queues.
  void* record();

  // Blocks until the work is done.
  void wait();

 private:
  friend class Memory;

  std::shared_ptr<Filler> filler_;
  std::unique_ptr<Event> event_;
};

// The buffers of one struct. They are freed when the work on them is done.
class Memory {
 public:
  static std::shared_ptr<Memory> make(std::shared_ptr<Work> work);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // A buffer that will have these bytes when the work is done.
  const void* add(const Bytes& bytes);
  // A buffer in host memory, which has them at once.
  const void* add_on_host(const Bytes& bytes);

 private:
  explicit Memory(std::shared_ptr<Work> work) : work_(std::move(work)) {}

  std::shared_ptr<Work> work_;
  std::vector<std::unique_ptr<Allocation>> allocations_;
};

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_MEMORY_HPP
