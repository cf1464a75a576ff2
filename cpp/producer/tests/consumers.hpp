// The consumer's side of an event, by the vendor's own header and library: what a binding has to
// do, done by hand.
#pragma once

#include <functional>
#include <string>
#include <vector>

struct Consumer {
  std::string backend;
  std::function<bool(void* sync_event)> ready;
  std::function<void(void* sync_event)> synchronize;
  std::function<void(void* sync_event, void* queue)> wait_on;
};

Consumer ExtDevConsumer();
Consumer OpenClConsumer();
Consumer CudaConsumer(std::string backend);
Consumer RocmConsumer(std::string backend);
Consumer VulkanConsumer();

// One per backend that has queues and whose vendor's header was there for the build, whether its
// device is there or not.
std::vector<Consumer> Consumers();
