// The memory of exported arrays and the work that fills it.
#ifndef FLETCHING_PRODUCER_MEMORY_HPP
#define FLETCHING_PRODUCER_MEMORY_HPP

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backend.hpp"
#include "catalogue.hpp"

namespace fletching::producer {

// One buffer, freed with the object. It records the catalogue bytes that it was made from.
class Allocation {
 public:
  // `inverted`: with every bit inverted. `watch`: NULL, or counts the first access.
  Allocation(Backend& backend, const Bytes& bytes, bool inverted, Watch* watch = nullptr);
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  void* buffer() const { return buffer_; }

 private:
  Backend& backend_;
  void* buffer_;
};

class Memory;

// Fills memory: synchronously without queues, otherwise by work on a queue, which a gate may block.
// Until that work is done, every bit of the memory is inverted.
class Filler {
 public:
  // `shut`: creates a gate, which open() opens.
  Filler(Backend& backend, bool shut);
  Filler(const Filler&) = delete;
  Filler& operator=(const Filler&) = delete;

  // The filler for exports without a gate.
  static std::shared_ptr<Filler> ungated(Backend& backend);

  Backend& backend() const { return backend_; }
  void open();
  // Watches later exports: no work fills them, so that each access is a consumer's.
  void watch();
  // Waits for the gated work, then counts. Throws ENOENT without watch().
  Accesses accesses();

  // Opens the gate, waits for the work, and frees the memory of released arrays.
  void close();

 private:
  friend class Memory;
  friend class Work;

  Backend& backend_;
  std::mutex mutex_;
  std::unique_ptr<Queue> queue_;  // NULL without queues
  std::unique_ptr<Gate> gate_;    // NULL without a gate
  std::unique_ptr<Watch> watch_;  // NULL: not watched
  // Everything exported behind the gate: its work may still be pending when it is released.
  std::vector<std::shared_ptr<Memory>> kept_;
};

// The work on an exported array and its descendants, with its event. It lives until the last of
// these structs is released.
class Work {
 public:
  explicit Work(std::shared_ptr<Filler> filler);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  Backend& backend() const { return filler_->backend(); }

  // Records the event after all added work and returns its address; NULL if the backend has no
  // queues.
  void* record();

  // Blocks until the work is done.
  void wait();

 private:
  friend class Memory;

  std::shared_ptr<Filler> filler_;
  std::unique_ptr<Event> event_;
};

// The buffers of one struct, freed when the work on them is done.
class Memory {
 public:
  static std::shared_ptr<Memory> make(std::shared_ptr<Work> work);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Adds a buffer that contains these bytes once the work is done.
  const void* add(const Bytes& bytes);
  // Adds a buffer in host memory that contains the bytes on return.
  const void* add_on_host(const Bytes& bytes);

 private:
  explicit Memory(std::shared_ptr<Work> work) : work_(std::move(work)) {}

  std::shared_ptr<Work> work_;
  std::vector<std::unique_ptr<Allocation>> allocations_;
};

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_MEMORY_HPP
