// A device of the reference producer, and the consumer's side of its events through the library.
#ifndef FLETCHING_TESTS_GPU_DEVICE_HPP
#define FLETCHING_TESTS_GPU_DEVICE_HPP

#include <optional>
#include <string>

#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/sync_event.hpp"
#include "fletching/vulkan_event.hpp"

namespace fletching::gpu {

/// One backend of the producer. The first object for ext_dev registers its waiter.
class Device {
 public:
  /// Throws Error when the producer does not know the backend, or does not say what is needed.
  explicit Device(const char* backend);

  [[nodiscard]] const char* backend() const { return backend_; }
  /// "real", "stand-in" or "absent", as a cell has it.
  [[nodiscard]] const char* status() const { return status_; }
  /// The device's name and version, or why it is absent.
  [[nodiscard]] const std::string& description() const { return description_; }
  /// cpu alone has none: no event, no gate.
  [[nodiscard]] bool has_queues() const;

  // The three operations. Vulkan's need to know the producer's VkDevice and queue.
  [[nodiscard]] Result<bool> ready(const DeviceArray& array) const;
  /// `handle`: of FletchingProducerQueueHandle.
  [[nodiscard]] Status wait_on(const DeviceArray& array, void* handle) const;
  [[nodiscard]] Status synchronize(const DeviceArray& array) const;

 private:
  const char* backend_;
  const char* status_ = "absent";
  std::string description_;
  std::optional<vulkan::WaitContext> vulkan_;
};

}  // namespace fletching::gpu

#endif  // FLETCHING_TESTS_GPU_DEVICE_HPP
