// Arrays and tensors for the DLPack tests, with release counts.
#ifndef FLETCHING_TESTS_DLPACK_DATA_HPP
#define FLETCHING_TESTS_DLPACK_DATA_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fletching/dlpack.hpp"
#include "fletching/extension.hpp"
#include "fletching/metadata.hpp"

namespace fletching::testing {

/// An array of one type, or a list of another Data, at a fixed address. It counts its releases and
/// can be exported once.
class Data {
 public:
  Data(std::string format, std::int64_t length, const void* values = nullptr)
      : format_(std::move(format)), buffers_{nullptr, values, nullptr} {
    array_.length = length;
    array_.n_buffers = values != nullptr ? 2 : 1;
  }

  Data& offset(std::int64_t offset) { return array_.offset = offset, *this; }
  Data& nulls(std::int64_t count, const void* bitmap) {
    array_.null_count = count;
    buffers_[0] = bitmap;
    return *this;
  }
  Data& buffers(std::int64_t count) { return array_.n_buffers = count, *this; }
  Data& on(ArrowDeviceType type, std::int64_t id) {
    device_type_ = type;
    device_id_ = id;
    return *this;
  }
  Data& event(void* event) { return event_ = event, *this; }
  Data& extension(std::string_view name, std::string_view parameters = "") {
    metadata_ =
        encode_metadata({{kExtensionNameKey, name}, {kExtensionMetadataKey, parameters}}).value();
    return *this;
  }
  Data& child(Data& child) {
    child_ = &child;
    return *this;
  }
  Data& dictionary() {
    dictionary_ = true;
    return *this;
  }

  /// Returns the schema; its owner may be destroyed at any time.
  Schema schema() {
    Schema out;
    fill(out.out());
    return out;
  }

  DeviceArray array() {
    DeviceArray out;
    ArrowDeviceArray* raw = out.out();
    raw->array = *fill_array();
    raw->device_type = device_type_;
    raw->device_id = device_id_;
    raw->sync_event = event_;
    return out;
  }

  [[nodiscard]] int releases() const { return releases_; }

 private:
  void fill(ArrowSchema* out) {
    out->format = format_.c_str();
    out->metadata = metadata_.empty() ? nullptr : metadata_.data();
    out->release = [](ArrowSchema* self) { self->release = nullptr; };
    dictionary_schema_.release = [](ArrowSchema* self) { self->release = nullptr; };
    if (dictionary_) out->dictionary = &dictionary_schema_;
    if (child_ == nullptr) return;
    child_->fill(&child_->schema_);
    schema_child_ = &child_->schema_;
    out->children = &schema_child_;
    out->n_children = 1;
  }

  ArrowArray* fill_array() {
    array_.buffers = buffers_.data();
    array_.private_data = this;
    array_.release = [](ArrowArray* self) {
      ++static_cast<Data*>(self->private_data)->releases_;
      for (std::int64_t i = 0; i < self->n_children; ++i) {
        if (self->children[i]->release != nullptr) self->children[i]->release(self->children[i]);
      }
      self->release = nullptr;
    };
    if (child_ != nullptr) {
      array_child_ = child_->fill_array();
      array_.children = &array_child_;
      array_.n_children = 1;
    }
    return &array_;
  }

  std::string format_;
  std::string metadata_;
  std::array<const void*, 3> buffers_;
  Data* child_ = nullptr;
  bool dictionary_ = false;
  ArrowDeviceType device_type_ = ARROW_DEVICE_CPU;
  std::int64_t device_id_ = -1;
  void* event_ = nullptr;
  int releases_ = 0;
  ArrowArray array_{};
  ArrowArray* array_child_ = nullptr;
  ArrowSchema schema_{};
  ArrowSchema* schema_child_ = nullptr;
  ArrowSchema dictionary_schema_{};
};

/// A foreign tensor of version 1.3 that counts calls of its deleter.
template <class Managed>
struct Foreign {
  Managed managed{};
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  int deleted = 0;

  Foreign(DLDataType type, const void* data, std::vector<std::int64_t> extents,
          std::vector<std::int64_t> steps = {})
      : shape(std::move(extents)), strides(std::move(steps)) {
    DLTensor& tensor = managed.dl_tensor;
    tensor.data = const_cast<void*>(data);
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<std::int32_t>(shape.size());
    tensor.dtype = type;
    tensor.shape = shape.empty() ? nullptr : shape.data();
    tensor.strides = strides.empty() ? nullptr : strides.data();
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    if constexpr (requires { managed.version; }) managed.version = {1, 3};
  }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;
  ~Foreign() = default;

  DLTensor* operator->() { return &managed.dl_tensor; }
  TensorOwner<Managed> take() { return TensorOwner<Managed>(&managed); }
};

using ForeignTensor = Foreign<DLManagedTensorVersioned>;
using ForeignLegacyTensor = Foreign<DLManagedTensor>;

inline constexpr DLDataType kInt8{kDLInt, 8, 1};
inline constexpr DLDataType kInt32{kDLInt, 32, 1};
inline constexpr DLDataType kFloat32{kDLFloat, 32, 1};

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_DLPACK_DATA_HPP
