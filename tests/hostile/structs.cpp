// Invalid schemas, arrays and tensors: valid ones with the changes listed in
// tests/corpus/hostile.json.
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "cases.hpp"
#include "data.h"
#include "tensor.h"

namespace {

// --- Schemas and arrays ---

void close(ArrowSchema* schema) { ReleaseSchemaChildInPlace(schema); }
void close(ArrowArray* array) { ReleaseArrayChildInPlace(array); }

bool has_children(const json& set) {
  return set.contains("n_children") || set.contains("children");
}

void change_own(ArrowSchema* out, const json& set) {
  assign(set, "format", out->format);
  assign(set, "name", out->name);
  assign(set, "metadata", out->metadata);
  assign(set, "flags", out->flags);
  if (set.value("release_forgets", false)) out->release = ReleaseSchemaAndForget;
}

void change_own(ArrowArray* out, const json& set) {
  static ArrowArray released;
  assign(set, "length", out->length);
  assign(set, "offset", out->offset);
  assign(set, "null_count", out->null_count);
  assign(set, "n_buffers", out->n_buffers);
  if (set.contains("buffers") && set["buffers"].is_null()) out->buffers = nullptr;
  if (set.value("values_null", false)) out->buffers[1] = nullptr;
  if (set.value("dictionary_released", false)) out->dictionary = &released;
  if (set.value("release_forgets", false)) out->release = ReleaseArrayAndForget;
}

/// `siblings`: the child list that contains `out`.
template <class Raw>
void change(Raw* out, const json& set, Raw** siblings = nullptr) {
  change_own(out, set);
  assign(set, "n_children", out->n_children);
  const json children = set.value("children", json::array());
  if (children.is_null()) out->children = nullptr;
  if (children.is_string()) out->children = siblings;
  for (size_t i = 0; children.is_array() && i < children.size(); ++i) {
    if (children[i].is_null()) {
      out->children[i] = nullptr;
    } else {
      change(out->children[i], children[i], out->children);
    }
  }
  if (set.contains("release") && set["release"].is_null()) close(out);
}

// --- Tensors ---

struct Tensor {
  DLManagedTensorVersioned versioned{};
  DLManagedTensor legacy{};
  std::vector<int64_t> shape{3};
  std::vector<int64_t> strides{1};
  std::array<int32_t, 4> values{0, 1, 2, 3};
};

/// Deleted tensors, kept until Finish, so that a second deleter call can read the tensor's id,
/// which is then closed.
std::mutex deleted_mutex;
std::vector<std::unique_ptr<Tensor>> deleted;

void keep(void* tensor) {
  const std::lock_guard lock(deleted_mutex);
  deleted.emplace_back(static_cast<Tensor*>(tensor));
}

template <class Managed>
void remove(Managed* self) {
  CloseId(self->manager_ctx, "the deleter of a tensor");
}

int64_t* list(const json& set, const char* key, std::vector<int64_t>& values) {
  if (set.contains(key) && set[key].is_null()) return nullptr;
  assign(set, key, values);
  return values.empty() ? nullptr : values.data();
}

void fill(Tensor& tensor, DLTensor& out, const json& set) {
  out.shape = list(set, "shape", tensor.shape);
  out.strides = list(set, "strides", tensor.strides);
  out.ndim = set.value("ndim", static_cast<int32_t>(tensor.shape.size()));
  const json at = set.value("data", json(1));
  out.data = at.is_null() ? nullptr : &tensor.values.at(at);
  out.byte_offset = set.value("byte_offset", uint64_t{0});
  const auto type = set.value("type", std::array<uint16_t, 3>{kDLInt, 32, 1});
  out.dtype = {static_cast<uint8_t>(type[0]), static_cast<uint8_t>(type[1]), type[2]};
  const int32_t device_type = set.value("device_type", int32_t{kDLCPU});
  std::memcpy(&out.device.device_type, &device_type, sizeof device_type);
  out.device.device_id = set.value("device_id", int32_t{0});
}

void fill_header(DLManagedTensor& /*out*/, const json& /*set*/) {}
void fill_header(DLManagedTensorVersioned& out, const json& set) {
  const auto version = set.value("version", std::array<uint32_t, 2>{1, 3});
  out.version = {version[0], version[1]};
  out.flags = set.value("flags", uint64_t{0});
  if (!set.contains("garbage")) return;
  std::memset(&out.flags, set["garbage"], sizeof out.flags);
  std::memset(&out.dl_tensor, set["garbage"], sizeof out.dl_tensor);
}

template <class Managed>
int export_tensor(const Case* found, Managed Tensor::* member, Managed** out,
                  FletchingMessage* message) {
  if (found == nullptr) return EINVAL;
  if (out == nullptr) return Fail(message, EINVAL, "out is NULL");
  return guarded(message, [&] {
    const json& set = changes_of(found);
    static Tensor eternal;  // has no deleter
    const bool is_eternal = set.contains("deleter");
    auto owned = std::make_unique<Tensor>();
    Tensor& tensor = is_eternal ? eternal : *owned;
    Managed& managed = tensor.*member;
    fill(tensor, managed.dl_tensor, set);
    fill_header(managed, set);
    if (!is_eternal) {
      managed.manager_ctx = OpenId(kCountsAsStruct, &tensor, keep);
      if (managed.manager_ctx == nullptr) return Fail(message, ENOMEM, "out of memory");
      managed.deleter = remove<Managed>;
    }
    *out = is_eternal ? &managed : &(owned.release()->*member);
    return 0;
  });
}

}  // namespace

void FinishTensors(void) {
  const std::lock_guard lock(deleted_mutex);
  deleted.clear();
}

int FletchingHostileExportSchema(const char* name, ArrowSchema* out, FletchingMessage* message) {
  const Case* found = FindCase(&kSchemaParty, name, message);
  if (found == nullptr) return EINVAL;
  if (out == nullptr) return Fail(message, EINVAL, "out is NULL");
  return guarded(message, [&] {
    const json& set = changes_of(found);
    const int made =
        set.contains("depth") ? MakeDeepSchema(out) : MakeSchema(has_children(set), out);
    if (made != 0) return Fail(message, made, "out of memory");
    change(out, set);
    return 0;
  });
}

int FletchingHostileExportArray(const char* name, ArrowSchema* schema, ArrowDeviceArray* out,
                                FletchingMessage* message) {
  const Case* found = FindCase(&kArrayParty, name, message);
  if (found == nullptr) return EINVAL;
  if (schema == nullptr || out == nullptr) return Fail(message, EINVAL, "schema or out is NULL");
  return guarded(message, [&] {
    const json& set = changes_of(found);
    if (MakeSchema(has_children(set), schema) != 0) return Fail(message, ENOMEM, "out of memory");
    if (MakeDeviceArray(has_children(set), out) != 0) {
      schema->release(schema);
      return Fail(message, ENOMEM, "out of memory");
    }
    change(&out->array, set);
    change_device(out, set);
    return 0;
  });
}

int FletchingHostileExportTensor(const char* name, DLManagedTensorVersioned** out,
                                 FletchingMessage* message) {
  const Case* found = FindCase(&kVersionedTensorParty, name, message);
  if (found == nullptr) found = FindCase(&kTensorParty, name, message);
  return export_tensor(found, &Tensor::versioned, out, message);
}

int FletchingHostileExportLegacyTensor(const char* name, DLManagedTensor** out,
                                       FletchingMessage* message) {
  return export_tensor(FindCase(&kTensorParty, name, message), &Tensor::legacy, out, message);
}
