// A CUDA or ROCm device of the reference producer, which has a gate.
#ifndef FLETCHING_TESTS_GPU_DEVICE_HPP
#define FLETCHING_TESTS_GPU_DEVICE_HPP

#include <string>

#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/sync_event.hpp"

namespace fletching::gpu {

/// One backend of the producer.
class Device {
 public:
  /// Throws Error if the producer does not know the backend.
  explicit Device(const char* backend);

  [[nodiscard]] const char* backend() const { return backend_; }
  /// "real", "stand-in" or "absent".
  [[nodiscard]] const char* status() const { return status_; }
  /// The device's name and version, or the reason for its absence.
  [[nodiscard]] const std::string& description() const { return description_; }

 private:
  const char* backend_;
  const char* status_ = "absent";
  std::string description_;
};

/// `handle`: from FletchingProducerQueueHandle.
inline Status wait_on(const DeviceArray& array, void* handle) {
  const SyncEvent event(array);
  return event.wait_on({event.device_type(), handle});
}

}  // namespace fletching::gpu

#endif  // FLETCHING_TESTS_GPU_DEVICE_HPP
