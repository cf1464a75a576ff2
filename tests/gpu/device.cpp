#include "device.hpp"

#include <cstdint>

#include "error.hpp"
#include "gate.h"

namespace fletching::gpu {

Device::Device(const char* backend) : backend_(backend) {
  std::int32_t presence = FLETCHING_PRODUCER_ABSENT;
  FletchingMessage message{};
  const int code = FletchingProducerBackendPresence(backend, &presence, &message);
  description_ = message.text;
  if (code != 0) fail(code, description_);
  if (presence == FLETCHING_PRODUCER_ABSENT) return;
  status_ = presence == FLETCHING_PRODUCER_STAND_IN ? "stand-in" : "real";
}

}  // namespace fletching::gpu
