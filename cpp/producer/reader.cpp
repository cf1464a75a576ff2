#include "reader.hpp"

#include "message.hpp"
#include "registry.hpp"

namespace fletching::producer {
namespace {

void RequireCount(const std::string& path, const char* what, int64_t seen, size_t expected) {
  if (seen == static_cast<int64_t>(expected)) return;
  Fail(EBADMSG, path + " has " + std::to_string(seen) + " " + what + ", expected " +
                    std::to_string(expected));
}

}  // namespace

Reader::Reader(Backend& backend) : backend_(backend), queue_(backend.NewQueue()) {}

void Reader::Read(const Case& what, const ArrowDeviceArray& array) {
  const std::string path = "case " + what.name + ": /";
  if (array.array.release == nullptr) Fail(EBADMSG, path + " array is released");
  ReadNode(path, what.node, array.array, copies_);
}

void Reader::ReadNode(const std::string& path, const Node& node, const ArrowArray& array,
                      std::vector<Copy>& copies) {
  RequireCount(path, "buffers", array.n_buffers, node.buffers.size());
  RequireCount(path, "children", array.n_children, node.children.size());
  for (size_t i = 0; i < node.buffers.size(); ++i) {
    const std::optional<Bytes>& bytes = node.buffers[i];
    if (!bytes || bytes->empty() || IsInHostMemory(node, i)) continue;
    const std::string name = path + " buffer " + std::to_string(i);
    if (OriginOf(array.buffers[i]) != &*bytes) {
      Fail(EBADMSG, name + " is not the memory that was exported");
    }
    const std::shared_ptr<void> staging(
        backend_.AllocateStaging(bytes->size()),
        [&backend = backend_](void* memory) { backend.FreeStaging(memory); });
    copies.push_back({name, &*bytes, staging});
    queue_->Read(staging.get(), array.buffers[i], bytes->size());
  }
  for (size_t i = 0; i < node.children.size(); ++i) {
    ReadNode(path + std::to_string(i) + "/", node.children[i], *array.children[i], copies);
  }
  if (node.dictionary) ReadNode(path + "d/", *node.dictionary, *array.dictionary, copies);
}

int64_t Reader::Verify(bool inverted) {
  queue_->Finish();
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
      Fail(EBADMSG, copy.name + ": byte " + std::to_string(i) +
                        (!other     ? " is neither old nor new"
                         : inverted ? " is new, expected old"
                                    : " is old, expected new"));
    }
  }
  return compared;
}

}  // namespace fletching::producer
