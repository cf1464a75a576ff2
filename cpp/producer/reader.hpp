// Reads exported buffers as a consumer on a device does: in the order of its own queue.
#pragma once

#include <memory>
#include <vector>

#include "backend.hpp"
#include "catalogue.hpp"

namespace fletching::producer {

class Reader {
 public:
  explicit Reader(Backend& backend);

  void* Handle() { return queue_->Handle(); }

  // Enqueues a copy of every buffer on the device. Throws EBADMSG for memory that is not exported.
  void Read(const Case& what, const ArrowDeviceArray& array);

  bool IsIdle() { return queue_->IsIdle(); }
  void Finish() { queue_->Finish(); }

  // Waits, compares with the catalogue, or with every bit of it `inverted`, and forgets what was
  // read. Returns the number of bytes. Throws EBADMSG for a difference.
  int64_t Verify(bool inverted);

 private:
  struct Copy {
    std::string name;  // "case int32: /0 buffer 1"
    const Bytes* expected;
    std::shared_ptr<void> staging;
  };

  void ReadNode(const std::string& path, const Node& node, const ArrowArray& array,
                std::vector<Copy>& copies);

  Backend& backend_;
  std::vector<Copy> copies_;
  std::unique_ptr<Queue> queue_;  // goes first, and waits for the copies
};

}  // namespace fletching::producer
