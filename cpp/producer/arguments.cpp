#include "arguments.hpp"

#include <cstring>

namespace fletching::producer {
namespace {

// `kind`: "backend", "case".
template <class Item>
const Item& by_name(const char* kind, const char* name, const std::vector<Item>& items) {
  if (name == nullptr) fail(EINVAL, std::string(kind) + ": NULL: expected a name");
  std::string known;
  for (const Item& item : items) {
    if (std::strcmp(name_of(item), name) == 0) return item;
    known += std::string(known.empty() ? "" : ", ") + name_of(item);
  }
  fail(EINVAL, std::string(kind) + ": unknown: expected one of " + known + ", got '" +
                   foreign_text(name) + "'");
}

}  // namespace

Backend& any_backend_by_name(const char* name) { return *by_name("backend", name, backends()); }

Backend& backend_by_name(const char* name) {
  Backend& backend = any_backend_by_name(name);
  const Device device = backend.find();
  if (device.presence != Presence::kAbsent) return backend;
  fail(ENODEV, std::string("backend ") + name + ": absent: " + device.text);
}

const Case& case_by_name(const char* name) { return by_name("case", name, catalogue()); }

void require_pointer(const char* name, const void* pointer) {
  if (pointer == nullptr) fail(EINVAL, std::string(name) + ": NULL: expected an address");
}

void check_batches(int64_t batches, int64_t fail_at) {
  if (batches < 0)
    fail(EINVAL, "batches: negative: expected 0 or more, got " + std::to_string(batches));
  if (fail_at >= -1 && fail_at <= batches) return;
  fail(EINVAL, "fail_at: out of range: expected -1 to " + std::to_string(batches) +
                   " (batches), got " + std::to_string(fail_at));
}

}  // namespace fletching::producer
