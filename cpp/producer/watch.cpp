#include "watch.hpp"

#include <cerrno>
#include <cstring>
#include <string>

#include "message.hpp"

#if defined(__linux__)
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace fletching::producer {
namespace {

// Replaces the pages by those of a file, or of no file if it is -1.
bool remap(const Pages& pages, int file) noexcept {
  const int flags = MAP_PRIVATE | MAP_FIXED | (file < 0 ? MAP_ANONYMOUS : 0);
  return mmap(pages.begin, pages.bytes, PROT_READ | PROT_WRITE, flags, file, 0) != MAP_FAILED;
}

}  // namespace

Watch::Watch() {
  file_ = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (sysconf(_SC_PAGESIZE) == kPageBytes && sees_access()) return;
  if (file_ >= 0) close(file_);
  fail(ENOTSUP,
       "watch: not available: expected pages of 4096 bytes and /proc/self/pagemap with the "
       "addresses "
       "of this process, not those of its emulator");
}

bool Watch::sees_access() const noexcept {
  void* page = mmap(nullptr, kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  const Pages pages{page, kPageBytes};
  bool sees = !has_access(pages) && mprotect(page, kPageBytes, PROT_READ | PROT_WRITE) == 0;
  if (sees) {
    *static_cast<volatile char*>(page) = 1;
    sees = has_access(pages);
  }
  munmap(page, kPageBytes);
  return sees;
}

// Maps anonymous memory again: the allocator may expect zeros in it after MADV_DONTNEED.
Watch::~Watch() {
  for (const Range& range : ranges_) {
    const auto* begin = static_cast<const std::byte*>(range.pages.begin);
    const std::vector<std::byte> content(begin, begin + range.pages.bytes);
    if (remap(range.pages, -1)) std::memcpy(range.pages.begin, content.data(), content.size());
  }
  close(file_);
}

// Each range has a separate file, because an access also maps neighbouring pages of the same file.
void Watch::add(const Pages& pages) {
  const int file = memfd_create("fletching", MFD_CLOEXEC);
  const auto bytes = static_cast<ssize_t>(pages.bytes);
  const bool is_done =
      file >= 0 && write(file, pages.begin, pages.bytes) == bytes && remap(pages, file);
  const int code = errno;
  if (file >= 0) close(file);
  if (!is_done) {
    fail(EIO, "watch: add: cannot map a file over the pages: errno " + std::to_string(code));
  }
  if (has_access(pages)) {  // after mlockall(MCL_FUTURE)
    fail(ENOTSUP, "watch: add: the kernel maps pages before their first access");
  }
  const std::lock_guard lock(mutex_);
  ranges_.push_back({pages, false});
}

void Watch::open() noexcept {
  const std::lock_guard lock(mutex_);
  if (is_open_) return;
  is_open_ = true;
  for (Range& range : ranges_) range.is_before = has_access(range.pages);
}

Accesses Watch::accesses() const noexcept {
  Accesses counts{};
  const std::lock_guard lock(mutex_);
  for (const Range& range : ranges_) {
    if (range.is_before) {
      ++counts.before;
    } else if (has_access(range.pages)) {
      ++counts.after;
    }
  }
  return counts;
}

// proc_pid_pagemap(5): an entry of 64 bits for each page.
bool Watch::has_access(const Pages& pages) const noexcept {
  constexpr uint64_t kSwappedOrPresent = uint64_t{3} << 62;
  const auto first = reinterpret_cast<uintptr_t>(pages.begin) / kPageBytes;
  for (size_t i = 0; i < pages.bytes / kPageBytes; ++i) {
    uint64_t entry = 0;
    const auto at = static_cast<off_t>((first + i) * sizeof entry);
    if (pread(file_, &entry, sizeof entry, at) != sizeof entry) return false;
    if ((entry & kSwappedOrPresent) != 0) return true;
  }
  return false;
}

}  // namespace fletching::producer

#else

namespace fletching::producer {

Watch::Watch() { fail(ENOTSUP, "watch: not available: expected Linux"); }
Watch::~Watch() = default;
void Watch::add(const Pages&) {}
void Watch::open() noexcept {}
Accesses Watch::accesses() const noexcept { return {}; }

}  // namespace fletching::producer
#endif
