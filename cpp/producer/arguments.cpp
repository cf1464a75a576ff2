#include "arguments.hpp"

#include <cstring>

namespace fletching::producer {
namespace {

// `kind`: "backend", "case".
template <class Item>
const Item& ByName(const char* kind, const char* name, const std::vector<Item>& items) {
  if (name == nullptr) Fail(EINVAL, std::string(kind) + " is NULL");
  std::string known;
  for (const Item& item : items) {
    if (std::strcmp(NameOf(item), name) == 0) return item;
    known += std::string(known.empty() ? "" : ", ") + NameOf(item);
  }
  Fail(EINVAL, "unknown " + std::string(kind) + " '" + ForeignText(name) + "'; known: " + known);
}

}  // namespace

Backend& AnyBackendByName(const char* name) { return *ByName("backend", name, Backends()); }

Backend& BackendByName(const char* name) {
  Backend& backend = AnyBackendByName(name);
  const Device device = backend.Find();
  if (device.presence != Presence::kAbsent) return backend;
  Fail(ENODEV, std::string("backend ") + name + " is absent: " + device.text);
}

const Case& CaseByName(const char* name) { return ByName("case", name, Catalogue()); }

void RequirePointer(const char* name, const void* pointer) {
  if (pointer == nullptr) Fail(EINVAL, std::string(name) + " is NULL");
}

void CheckBatches(int64_t batches, int64_t fail_at) {
  if (batches < 0)
    Fail(EINVAL, "batches is " + std::to_string(batches) + ", and may not be negative");
  if (fail_at >= -1 && fail_at <= batches) return;
  Fail(EINVAL, "fail_at is " + std::to_string(fail_at) + ", and has to be from -1 to batches (" +
                   std::to_string(batches) + ")");
}

}  // namespace fletching::producer
