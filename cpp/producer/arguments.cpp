#include "arguments.hpp"

#include <cstring>

namespace fletching::producer {
namespace {

// `kind`: "backend", "case".
template <class Item>
const Item& by_name(const char* kind, const char* name, const std::vector<Item>& items) {
  if (name == nullptr) fail(EINVAL, std::string(kind) + " is NULL");
  std::string known;
  for (const Item& item : items) {
    if (std::strcmp(name_of(item), name) == 0) return item;
    known += std::string(known.empty() ? "" : ", ") + name_of(item);
  }
  fail(EINVAL, "unknown " + std::string(kind) + " '" + foreign_text(name) + "'; known: " + known);
}

}  // namespace

Backend& any_backend_by_name(const char* name) { return *by_name("backend", name, backends()); }

Backend& backend_by_name(const char* name) {
  Backend& backend = any_backend_by_name(name);
  const Device device = backend.find();
  if (device.presence != Presence::kAbsent) return backend;
  fail(ENODEV, std::string("backend ") + name + " is absent: " + device.text);
}

const Case& case_by_name(const char* name) { return by_name("case", name, catalogue()); }

void require_pointer(const char* name, const void* pointer) {
  if (pointer == nullptr) fail(EINVAL, std::string(name) + " is NULL");
}

void check_batches(int64_t batches, int64_t fail_at) {
  if (batches < 0)
    fail(EINVAL, "batches is " + std::to_string(batches) + ", and may not be negative");
  if (fail_at >= -1 && fail_at <= batches) return;
  fail(EINVAL, "fail_at is " + std::to_string(fail_at) + ", and has to be from -1 to batches (" +
                   std::to_string(batches) + ")");
}

}  // namespace fletching::producer
