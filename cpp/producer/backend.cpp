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
  } catch (...) {
    backend_.Free(buffer_);
    throw;
  }
  CountAllocation(1);
}

Allocation::~Allocation() {
  backend_.Free(buffer_);
  CountAllocation(-1);
}

}  // namespace fletching::producer
