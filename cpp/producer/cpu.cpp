// Host memory. No queues and no events: the data is ready on export.
#include <cstring>
#include <new>

#include "backend.hpp"
#include "message.hpp"

namespace fletching::producer {
namespace {

constexpr std::align_val_t kAlignment{64};

class Cpu : public Backend {
 public:
  const char* name() const override { return "cpu"; }
  ArrowDeviceType device_type() const override { return ARROW_DEVICE_CPU; }
  int64_t device_id() const override { return -1; }
  Device find() override { return {Presence::kReal, "the host"}; }

  void* allocate(size_t bytes) override { return ::operator new(bytes, kAlignment); }
  void free(void* buffer) noexcept override { ::operator delete(buffer, kAlignment); }
  void copy_to(void* buffer, const void* host, size_t bytes) override {
    std::memcpy(buffer, host, bytes);
  }
  void copy_from(void* host, const void* buffer, size_t bytes) override {
    std::memcpy(host, buffer, bytes);
  }
  void* allocate_staging(size_t bytes) override { return allocate(bytes); }
  void free_staging(void* staging) noexcept override { free(staging); }

  bool has_queues() const override { return false; }
  std::unique_ptr<Queue> new_queue() override {
    fail(ENOTSUP,
         "backend cpu: no queues: expected a device backend, because its data is ready at once");
  }
};

}  // namespace

Backend* cpu_backend() {
  static Cpu cpu;
  return &cpu;
}

}  // namespace fletching::producer
