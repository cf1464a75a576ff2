// SPDX-License-Identifier: Apache-2.0
#include "handles.hpp"

#include <sys/mman.h>

#include <cstring>

namespace fletching::standin {
namespace {

constexpr std::size_t kReserve = std::size_t{1} << 32;  // the system commits it as it is used
constexpr std::size_t kBlock = 32;
constexpr std::uint64_t kNoHandle = 0xF1E7C417'0BADF00D;

}  // namespace

void* Handles::next_block() {
  if (blocks_ == nullptr) {
    void* reserve = mmap(nullptr, kReserve, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(reserve != MAP_FAILED, Status::kOutOfMemory);
    blocks_ = static_cast<std::byte*>(reserve);
  }
  require(used_ + kBlock <= kReserve, Status::kOutOfMemory);
  std::byte* block = blocks_ + used_;
  used_ += kBlock;
  for (std::size_t at = 0; at < kBlock; at += sizeof(kNoHandle)) {
    std::memcpy(block + at, &kNoHandle, sizeof(kNoHandle));
  }
  return block;
}

bool Handles::was_given_out(const void* handle) const {
  const auto at = reinterpret_cast<std::uintptr_t>(handle);
  const auto first = reinterpret_cast<std::uintptr_t>(blocks_);
  return blocks_ != nullptr && at >= first && at < first + used_;
}

}  // namespace fletching::standin
