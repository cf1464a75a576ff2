#include "backend.hpp"

namespace fletching::producer {

const std::vector<Backend*>& backends() {
  static const std::vector<Backend*> backends = {
      cpu_backend(),          cuda_backend(),   cuda_host_backend(),
      cuda_managed_backend(), rocm_backend(),   rocm_host_backend(),
      opencl_backend(),       vulkan_backend(), ext_dev_backend()};
  return backends;
}

}  // namespace fletching::producer
