#include "backend.hpp"

namespace fletching::producer {

const std::vector<Backend*>& Backends() {
  static const std::vector<Backend*> backends = {CpuBackend(), OpenClBackend(), ExtDevBackend()};
  return backends;
}

}  // namespace fletching::producer
