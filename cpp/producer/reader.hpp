// Reads exported buffers like a consumer on a device, on a separate queue.
#ifndef FLETCHING_PRODUCER_READER_HPP
#define FLETCHING_PRODUCER_READER_HPP

#include <memory>
#include <vector>

#include "backend.hpp"
#include "catalogue.hpp"

namespace fletching::producer {

class Reader {
 public:
  explicit Reader(Backend& backend);

  void* handle() { return queue_->handle(); }

  // Enqueues a copy of every device buffer. Throws EBADMSG if a buffer is not exported memory.
  void read(const Case& what, const ArrowDeviceArray& array);

  bool is_idle() { return queue_->is_idle(); }
  void finish() { queue_->finish(); }

  // Waits, compares the copies with the catalogue, with every bit inverted if `inverted`, and
  // discards them. Returns the number of bytes. Throws EBADMSG if they differ.
  int64_t verify(bool inverted);

 private:
  struct Copy {
    std::string name;  // "case int32: /0 buffer 1"
    const Bytes* expected;
    std::shared_ptr<void> staging;
  };

  void read_node(const std::string& path, const Node& node, const ArrowArray& array,
                 std::vector<Copy>& copies);

  Backend& backend_;
  std::vector<Copy> copies_;
  std::unique_ptr<Queue> queue_;  // destroyed first; waits for the copies
};

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_READER_HPP
