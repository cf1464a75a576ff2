// Hand-written event consumers that use the vendor's header and library, as a binding does.
#ifndef FLETCHING_PRODUCER_TESTS_CONSUMERS_HPP
#define FLETCHING_PRODUCER_TESTS_CONSUMERS_HPP

#include <functional>
#include <string>
#include <vector>

struct Consumer {
  std::string backend;
  std::function<bool(void* sync_event)> ready;
  std::function<void(void* sync_event)> synchronize;
  std::function<void(void* sync_event, void* queue)> wait_on;
};

Consumer ext_dev_consumer();
Consumer opencl_consumer();
Consumer cuda_consumer(std::string backend);
Consumer rocm_consumer(std::string backend);
Consumer vulkan_consumer();

// One per backend that has queues and whose vendor header was available to the build, even if its
// device is absent.
std::vector<Consumer> consumers();

#endif  // FLETCHING_PRODUCER_TESTS_CONSUMERS_HPP
