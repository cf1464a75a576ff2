#include "reader.hpp"

#include "message.hpp"
#include "registry.hpp"

namespace fletching::producer {
namespace {

void require_count(const std::string& path, const char* what, int64_t seen, size_t expected) {
  if (seen == static_cast<int64_t>(expected)) return;
  fail(EBADMSG, path + " has " + std::to_string(seen) + " " + what + ", expected " +
                    std::to_string(expected));
}

}  // namespace

Reader::Reader(Backend& backend) : backend_(backend), queue_(backend.new_queue()) {}

void Reader::read(const Case& what, const ArrowDeviceArray& array) {
  const std::string path = "case " + what.name + ": /";
  if (array.array.release == nullptr) fail(EBADMSG, path + " array is released");
  read_node(path, what.node, array.array, copies_);
  queue_->flush();
}

void Reader::read_node(const std::string& path, const Node& node, const ArrowArray& array,
                       std::vector<Copy>& copies) {
  require_count(path, "buffers", array.n_buffers, node.buffers.size());
  require_count(path, "children", array.n_children, node.children.size());
  for (size_t i = 0; i < node.buffers.size(); ++i) {
    const std::optional<Bytes>& bytes = node.buffers[i];
    if (!bytes || bytes->empty() || is_in_host_memory(node, i)) continue;
    const std::string name = path + " buffer " + std::to_string(i);
    if (origin_of(array.buffers[i]) != &*bytes) {
      fail(EBADMSG, name + " is not the memory that was exported");
    }
    const std::shared_ptr<void> staging(
        backend_.allocate_staging(bytes->size()),
        [&backend = backend_](void* memory) { backend.free_staging(memory); });
    copies.push_back({name, &*bytes, staging});
    queue_->read(staging.get(), array.buffers[i], bytes->size());
  }
  for (size_t i = 0; i < node.children.size(); ++i) {
    read_node(path + std::to_string(i) + "/", node.children[i], *array.children[i], copies);
  }
  if (node.dictionary) read_node(path + "d/", *node.dictionary, *array.dictionary, copies);
}

int64_t Reader::verify(bool inverted) {
  queue_->finish();
  const std::vector<Copy> copies = std::move(copies_);
  copies_.clear();
  int64_t compared = 0;
  for (const Copy& copy : copies) {
    const auto* seen = static_cast<const uint8_t*>(copy.staging.get());
    for (size_t i = 0; i < copy.expected->size(); ++i, ++compared) {
      const uint8_t now = (*copy.expected)[i];
      const auto before = static_cast<uint8_t>(~now);
      if (seen[i] == (inverted ? before : now)) continue;
      const bool other = seen[i] == (inverted ? now : before);
      fail(EBADMSG, copy.name + ": byte " + std::to_string(i) +
                        (!other     ? " is neither old nor new"
                         : inverted ? " is new, expected old"
                                    : " is old, expected new"));
    }
  }
  return compared;
}

}  // namespace fletching::producer
