// Sees accesses to memory: the kernel maps a page on its first access.
#ifndef FLETCHING_PRODUCER_WATCH_HPP
#define FLETCHING_PRODUCER_WATCH_HPP

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

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

// Counts the ranges of pages that any thread or system call accesses, before and after open(). An
// access by a forked process is not seen, nor one whose page the kernel has taken back since.
class Watch {
 public:
  // Throws ENOTSUP except on Linux with pages of 4096 bytes, and in some emulators.
  Watch();
  ~Watch();  // nobody may access the pages during this call
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // The pages must live as long as the object, and nobody may access them during this call. Throws
  // EIO, or ENOTSUP in a process with mlockall(MCL_FUTURE).
  void add(const Pages& pages);
  void open() noexcept;
  Accesses accesses() const noexcept;

 private:
  struct Range {
    Pages pages;
    bool is_before;
  };

  bool has_access(const Pages& pages) const noexcept;
  bool sees_access() const noexcept;

  mutable std::mutex mutex_;
  std::vector<Range> ranges_;
  bool is_open_ = false;
  int file_ = -1;  // /proc/self/pagemap
};

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_WATCH_HPP
