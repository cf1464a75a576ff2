// Memory of a vendor's runtime, with reserves for the time while a gate is shut.
#ifndef FLETCHING_PRODUCER_RESERVE_HPP
#define FLETCHING_PRODUCER_RESERVE_HPP

#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "message.hpp"

namespace fletching::producer {

enum class MemoryKind { kDevice, kPinned, kManaged };

// A driver may wait for the whole device before it allocates or frees memory. With a shut gate this
// is a deadlock if the same thread must open the gate. While a gate is shut, allocations therefore
// come from preallocated blocks, and memory is freed only after all gates are open. There is one
// object per `Api` (gpu.hpp), for all threads. A thread that allocates or frees blocks a thread
// that shuts a gate.
template <class Api>
class Reserve {
 public:
  static constexpr size_t kBlockBytes = size_t{4} << 20;
  static constexpr size_t kWords = 4;
  static constexpr size_t kAlignment = 256;  // like the vendors' allocations

  // Never destroyed: arrays may be released at process exit.
  static Reserve& instance() {
    static auto& reserve = *new Reserve;
    return reserve;
  }

  // Allocates the reserves, then calls `shut(word)`, which makes a stream wait for the word. Return
  // the word with leave().
  template <class Shut>
  void enter(Shut shut) {
    const typename Api::Current current;
    const std::lock_guard lock(mutex_);
    try {
      if (shut_ == 0) fill();
      if (words_.empty())
        fail(ENOMEM, "gate: too many are shut: expected at most " + std::to_string(kWords));
      shut(words_.back());
    } catch (...) {
      collect();
      throw;
    }
    words_.pop_back();
    ++words_out_;
    ++shut_;
  }
  // A gate was opened; the device may not have noticed yet.
  void open() noexcept {
    const std::lock_guard lock(mutex_);
    --shut_;
  }
  // The device has stopped polling the word.
  void leave(void* word) noexcept {
    const typename Api::Current current(std::nothrow);
    const std::lock_guard lock(mutex_);
    words_.push_back(word);  // fill() has reserved capacity for it
    --words_out_;
    collect();
  }

  // Throws ENOMEM if a gate is shut and the blocks are used up. `alignment` is also the unit of the
  // size, and counts only while a gate is shut.
  void* allocate(MemoryKind kind, size_t bytes, size_t alignment = kAlignment) {
    const typename Api::Current current;
    const std::lock_guard lock(mutex_);
    if (shut_ > 0) return slice(kind, bytes, alignment);
    later_.reserve(live_ + 1);  // so that free() need not allocate
    void* memory = Api::allocate(kind, bytes);
    ++live_;
    return memory;
  }
  void free(MemoryKind kind, void* memory) noexcept {
    const typename Api::Current current(std::nothrow);
    const std::lock_guard lock(mutex_);
    const auto slice = slices_.find(memory);
    if (slice != slices_.end()) {
      --slice->second->slices;
      slices_.erase(slice);
    } else {
      later_.emplace_back(kind, memory);
    }
    collect();
  }

 private:
  struct Block {
    explicit Block(MemoryKind of) : kind(of), begin(Api::allocate(of, kBlockBytes)) {}
    ~Block() { Api::free(kind, begin); }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    MemoryKind kind;
    void* begin;
    size_t used = 0;
    int64_t slices = 0;
  };

  void fill() {
    words_.reserve(words_out_ + kWords);
    while (words_.size() < kWords) words_.push_back(Api::new_word());
    // All kinds, because a gate of another kind may be shut later.
    blocks_.push_back(std::make_unique<Block>(MemoryKind::kPinned));
    blocks_.push_back(std::make_unique<Block>(MemoryKind::kDevice));
    if (Api::has_managed_memory()) {
      blocks_.push_back(std::make_unique<Block>(MemoryKind::kManaged));
    }
  }
  static size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
  // Returns NULL if no block has room.
  Block* find(MemoryKind kind, size_t bytes, size_t alignment) {
    for (const auto& block : blocks_) {
      const size_t end = rounded(block->used, alignment) + rounded(bytes, alignment);
      if (block->kind == kind && end <= kBlockBytes) return block.get();
    }
    return nullptr;
  }
  void* slice(MemoryKind kind, size_t bytes, size_t alignment) {
    Block* block = find(kind, bytes, alignment);
    if (block == nullptr) {
      fail(ENOMEM, "memory: reserve used up: expected fewer allocations while a gate is shut");
    }
    block->used = rounded(block->used, alignment);
    void* slice = static_cast<char*>(block->begin) + block->used;
    slices_.emplace(slice, block);
    block->used += rounded(bytes, alignment);
    ++block->slices;
    return slice;
  }
  void collect() noexcept {
    if (shut_ > 0) return;
    for (const auto& [kind, memory] : later_) Api::free(kind, memory);
    live_ -= later_.size();
    later_.clear();
    std::erase_if(blocks_, [](const auto& block) { return block->slices == 0; });
    for (void* word : words_) Api::free_word(word);
    words_.clear();
  }

  std::mutex mutex_;
  int64_t shut_ = 0;  // gates
  size_t live_ = 0;   // allocations outside of blocks, including `later_`
  size_t words_out_ = 0;
  std::vector<void*> words_;  // not in use by a gate
  std::vector<std::unique_ptr<Block>> blocks_;
  std::map<void*, Block*> slices_;
  std::vector<std::pair<MemoryKind, void*>> later_;  // freed while a gate was shut
};

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_RESERVE_HPP
