#include "backend.hpp"

namespace fletching::producer {

const std::vector<Backend*>& Backends() {
  static const std::vector<Backend*> backends = {
      CpuBackend(),      CudaBackend(),   CudaHostBackend(), CudaManagedBackend(), RocmBackend(),
      RocmHostBackend(), OpenClBackend(), VulkanBackend(),   ExtDevBackend()};
  return backends;
}

}  // namespace fletching::producer
