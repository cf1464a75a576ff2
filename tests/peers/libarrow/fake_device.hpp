// SPDX-License-Identifier: Apache-2.0
//
// A fake device for libarrow, registered as ARROW_DEVICE_EXT_DEV, with memory that the CPU cannot
// read and its own kind of event.
#ifndef FLETCHING_PEERS_LIBARROW_FAKE_DEVICE_HPP
#define FLETCHING_PEERS_LIBARROW_FAKE_DEVICE_HPP

#include <arrow/buffer.h>
#include <arrow/device.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace fletching::peers {

/// The event that sync_event points to on the fake device.
struct FakeEvent {
  std::atomic<int> waits{0};
};

/// Makes an address of the fake device, which is not a valid host address, so host reads fault.
inline std::uint64_t device_address(const void* host) {
  return reinterpret_cast<std::uintptr_t>(host) | (std::uint64_t{1} << 62);
}
inline const std::uint8_t* host_address(std::uint64_t device) {
  return reinterpret_cast<const std::uint8_t*>(device & ~(std::uint64_t{1} << 62));
}

class FakeSyncEvent : public arrow::Device::SyncEvent {
 public:
  FakeSyncEvent(void* event, release_fn_t release)
      : SyncEvent(event, release ? std::move(release) : [](void*) {}) {}

  arrow::Status Wait() override {
    ++static_cast<FakeEvent*>(get_raw())->waits;
    return arrow::Status::OK();
  }
  arrow::Status Record(const arrow::Device::Stream& /*stream*/) override {
    return arrow::Status::NotImplemented("the fake device has no streams");
  }
};

class FakeDevice : public arrow::Device {
 public:
  explicit FakeDevice(std::int64_t id) : id_(id) {}

  [[nodiscard]] const char* type_name() const override { return "fletching::FakeDevice"; }
  [[nodiscard]] std::string ToString() const override {
    return "FakeDevice(" + std::to_string(id_) + ")";
  }
  [[nodiscard]] bool Equals(const Device& other) const override {
    return other.device_type() == device_type() && other.device_id() == id_;
  }
  [[nodiscard]] std::int64_t device_id() const override { return id_; }
  [[nodiscard]] arrow::DeviceAllocationType device_type() const override {
    return arrow::DeviceAllocationType::kEXT_DEV;
  }
  std::shared_ptr<arrow::MemoryManager> default_memory_manager() override;

 private:
  std::int64_t id_;
};

class FakeMemoryManager : public arrow::MemoryManager {
 public:
  explicit FakeMemoryManager(const std::shared_ptr<arrow::Device>& device)
      : MemoryManager(device) {}

  arrow::Result<std::shared_ptr<arrow::io::RandomAccessFile>> GetBufferReader(
      std::shared_ptr<arrow::Buffer> /*buffer*/) override {
    return arrow::Status::NotImplemented("the fake device has no readers");
  }
  arrow::Result<std::shared_ptr<arrow::io::OutputStream>> GetBufferWriter(
      std::shared_ptr<arrow::Buffer> /*buffer*/) override {
    return arrow::Status::NotImplemented("the fake device has no writers");
  }
  arrow::Result<std::unique_ptr<arrow::Buffer>> AllocateBuffer(std::int64_t /*size*/) override {
    return arrow::Status::NotImplemented("the fake device allocates only by copying");
  }
  arrow::Result<std::shared_ptr<arrow::Device::SyncEvent>> WrapDeviceSyncEvent(
      void* event, arrow::Device::SyncEvent::release_fn_t release) override {
    return std::make_shared<FakeSyncEvent>(event, std::move(release));
  }

 protected:
  /// Copies to the device from the CPU.
  arrow::Result<std::shared_ptr<arrow::Buffer>> CopyBufferFrom(
      const std::shared_ptr<arrow::Buffer>& buffer,
      const std::shared_ptr<arrow::MemoryManager>& from) override {
    if (!from->is_cpu()) return nullptr;
    return std::make_shared<FakeBuffer>(buffer, shared_from_this());
  }
  /// Copies from the device to the CPU, after the event if there is one.
  arrow::Result<std::shared_ptr<arrow::Buffer>> CopyBufferTo(
      const std::shared_ptr<arrow::Buffer>& buffer,
      const std::shared_ptr<arrow::MemoryManager>& to) override {
    if (!to->is_cpu()) return nullptr;
    if (const auto event = buffer->device_sync_event()) ARROW_RETURN_NOT_OK(event->Wait());
    ARROW_ASSIGN_OR_RAISE(std::unique_ptr<arrow::Buffer> copy, to->AllocateBuffer(buffer->size()));
    std::memcpy(copy->mutable_data(), host_address(buffer->address()),
                static_cast<std::size_t>(buffer->size()));
    return std::shared_ptr<arrow::Buffer>(std::move(copy));
  }

 private:
  /// The bytes of a CPU buffer at a device address.
  class FakeBuffer : public arrow::Buffer {
   public:
    FakeBuffer(std::shared_ptr<arrow::Buffer> bytes, std::shared_ptr<arrow::MemoryManager> manager)
        : Buffer(reinterpret_cast<const std::uint8_t*>(device_address(bytes->data())),
                 bytes->size(), std::move(manager)),
          bytes_(std::move(bytes)) {}

   private:
    std::shared_ptr<arrow::Buffer> bytes_;
  };
};

inline std::shared_ptr<arrow::MemoryManager> FakeDevice::default_memory_manager() {
  return std::make_shared<FakeMemoryManager>(shared_from_this());
}

inline std::shared_ptr<arrow::MemoryManager> fake_memory_manager(std::int64_t device_id) {
  return std::make_shared<FakeDevice>(device_id)->default_memory_manager();
}

/// Makes libarrow map ARROW_DEVICE_EXT_DEV to fake devices, once per process.
inline arrow::Status register_fake_device() {
  static const arrow::Status status = arrow::RegisterDeviceMapper(
      arrow::DeviceAllocationType::kEXT_DEV,
      [](std::int64_t id) -> arrow::Result<std::shared_ptr<arrow::MemoryManager>> {
        return fake_memory_manager(id);
      });
  return status;
}

}  // namespace fletching::peers

#endif  // FLETCHING_PEERS_LIBARROW_FAKE_DEVICE_HPP
