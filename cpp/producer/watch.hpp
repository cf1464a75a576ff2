// Counts accesses to memory by page faults.
#ifndef FLETCHING_PRODUCER_WATCH_HPP
#define FLETCHING_PRODUCER_WATCH_HPP

#include <cstddef>
#include <cstdint>

namespace fletching::producer {

inline constexpr size_t kPageBytes = 4096;
inline size_t whole_pages(size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

struct Pages {
  void* begin;
  size_t bytes;
};

// Numbers of watched ranges.
struct Accesses {
  int32_t before;
  int32_t after;
};

// Protects pages until their first access, by any thread, and counts whether it came before open().
// The process has at most one. It handles SIGSEGV, and passes other faults to the earlier handler.
class Watch {
 public:
  Watch();   // throws EBUSY for a second one, ENOTSUP except on Linux with pages of 4096 bytes
  ~Watch();  // makes the pages accessible
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // The pages must stay allocated. Throws ENOMEM for too many. Not thread-safe.
  void add(const Pages& pages);
  void open() noexcept;
  Accesses accesses() const noexcept;
};

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_WATCH_HPP
