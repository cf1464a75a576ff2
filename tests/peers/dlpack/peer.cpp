// The conversions of fletching/dlpack.hpp as C functions, for tests that exchange tensors with
// other libraries. Each returns 0, or an errno value with an error in `message`.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "fletching/dlpack.hpp"

namespace {

constexpr std::size_t kMessage = 512;

int fail(const fletching::Error& error, char* message) {
  const std::size_t size = std::min(error.message().size(), kMessage - 1);
  std::memcpy(message, error.message().data(), size);
  message[size] = '\0';
  return error.code();
}

template <class Tensor>
int give(fletching::Result<Tensor> tensor, void** out, char* message) {
  if (!tensor) return fail(tensor.error(), message);
  *out = tensor->detach();
  return 0;
}

template <class Tensor>
int import_as(Tensor tensor, const fletching::DlpackImportOptions& options, ArrowSchema* schema,
              ArrowDeviceArray* array, int* flags, char* message) {
  fletching::Result<fletching::ImportedTensor> imported =
      fletching::from_dlpack(std::move(tensor), options);
  if (!imported) return fail(imported.error(), message);
  imported->schema.move_to(schema);
  imported->array.move_to(array);
  *flags = (imported->read_only ? 1 : 0) | (imported->copied ? 2 : 0);
  return 0;
}

}  // namespace

extern "C" {

/// Consumes both structs and returns a tensor: legacy if `legacy` is set, otherwise versioned.
int PeerToDlpack(ArrowSchema* schema, ArrowDeviceArray* array, int legacy, int read_only,
                 int as_storage, void** out, char* message) {
  const fletching::DlpackExportOptions options{.read_only = read_only != 0,
                                               .as_storage = as_storage != 0};
  const fletching::Schema owned(schema);
  fletching::DeviceArray moved(array);
  if (legacy != 0) {
    return give(fletching::to_legacy_dlpack(*owned.get(), moved, options), out, message);
  }
  return give(fletching::to_dlpack(*owned.get(), moved, options), out, message);
}

/// Consumes the tensor and fills both structs. `flags` is 1 for read-only plus 2 for a copy.
int PeerFromDlpack(void* tensor, int legacy, int lists, int copy, int as_storage,
                   ArrowSchema* schema, ArrowDeviceArray* array, int* flags, char* message) {
  const fletching::DlpackImportOptions options{
      .dimensions = lists != 0 ? fletching::Dimensions::kFixedSizeLists
                               : fletching::Dimensions::kFixedShapeTensor,
      .strided = copy != 0 ? fletching::Strided::kCopy : fletching::Strided::kRefuse,
      .as_storage = as_storage != 0};
  if (legacy != 0) {
    return import_as(fletching::LegacyDlpackTensor(static_cast<DLManagedTensor*>(tensor)), options,
                     schema, array, flags, message);
  }
  return import_as(fletching::DlpackTensor(static_cast<DLManagedTensorVersioned*>(tensor)), options,
                   schema, array, flags, message);
}

}  // extern "C"
