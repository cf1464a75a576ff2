// Host memory. No queue, no event: the data is there when the struct is.
#include <cstring>
#include <new>

#include "backend.hpp"
#include "message.hpp"

namespace fletching::producer {
namespace {

constexpr std::align_val_t kAlignment{64};

class Cpu : public Backend {
 public:
  const char* Name() const override { return "cpu"; }
  ArrowDeviceType DeviceType() const override { return ARROW_DEVICE_CPU; }
  int64_t DeviceId() const override { return -1; }
  Device Find() override { return {Presence::kReal, "the host"}; }

  void* Allocate(size_t bytes) override { return ::operator new(bytes, kAlignment); }
  void Free(void* buffer) noexcept override { ::operator delete(buffer, kAlignment); }
  void CopyTo(void* buffer, const void* host, size_t bytes) override {
    std::memcpy(buffer, host, bytes);
  }
  void CopyFrom(void* host, const void* buffer, size_t bytes) override {
    std::memcpy(host, buffer, bytes);
  }
  void* AllocateStaging(size_t bytes) override { return Allocate(bytes); }
  void FreeStaging(void* staging) noexcept override { Free(staging); }

  bool HasQueues() const override { return false; }
  std::unique_ptr<Queue> NewQueue() override {
    Fail(ENOTSUP, "backend cpu has no queue: its data is there when the struct is");
  }
};

}  // namespace

Backend* CpuBackend() {
  static Cpu cpu;
  return &cpu;
}

}  // namespace fletching::producer
