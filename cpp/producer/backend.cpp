#include "backend.hpp"

#include "registry.hpp"

namespace fletching::producer {

const std::vector<Backend*>& Backends() {
  static const std::vector<Backend*> backends = {CpuBackend()};
  return backends;
}

Allocation::Allocation(Backend& backend, const std::vector<uint8_t>& bytes)
    : backend_(backend), buffer_(backend.Allocate(bytes.size())) {
  try {
    if (!bytes.empty()) backend_.CopyTo(buffer_, bytes.data(), bytes.size());
    AddAllocation(buffer_, &bytes);
  } catch (...) {
    backend_.Free(buffer_);
    throw;
  }
}

Allocation::~Allocation() {
  RemoveAllocation(buffer_);  // first: the address may be given out again at once
  backend_.Free(buffer_);
}

}  // namespace fletching::producer
