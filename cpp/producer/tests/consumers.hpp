// The consumer's side of an event, by the vendor's own header and library: what a binding has to
// do, hand-written.
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

// One per backend that has queues and whose vendor's header was there for the build, whether its
// device is there or not.
std::vector<Consumer> consumers();

#endif  // FLETCHING_PRODUCER_TESTS_CONSUMERS_HPP
