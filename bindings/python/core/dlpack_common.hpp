// SPDX-License-Identifier: Apache-2.0
//
// Code that DLPack's methods and function table share.
#ifndef FLETCHING_PYTHON_DLPACK_COMMON_HPP
#define FLETCHING_PYTHON_DLPACK_COMMON_HPP

#include <atomic>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "array_common.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/dlpack_import.hpp"

namespace fletching::python {

/// A function of a module, imported on first use: an import takes as long as an export. Not an
/// object that a function initializes: its lock and the GIL could deadlock.
class Imported {
 public:
  constexpr Imported(const char* module, const char* name) noexcept
      : module_(module), name_(name) {}

  nb::handle get() {
    PyObject* found = found_.load(std::memory_order_acquire);
    if (found == nullptr) {
      found = nb::object(nb::getattr(nb::module_::import_(module_), name_)).release().ptr();
      found_.store(found, std::memory_order_release);  // the same object for every thread
    }
    return found;
  }

 private:
  const char* module_;
  const char* name_;
  std::atomic<PyObject*> found_{nullptr};
};

/// Raises BufferError if the result is an error, as DLPack requires of a producer that cannot
/// export.
template <class T>
T or_buffer_error(Result<T> result) {
  if (result.ok()) return *std::move(result);
  if (result.error().code() == ENOMEM) raise(result.error());
  raise_buffer_error(result.error().message());
}
/// Raises the exceptions of from_dlpack: TypeError for a type that Arrow lacks, BufferError for
/// memory that is malformed or would have to be copied, Error for a driver failure.
template <class T>
T or_import_error(Result<T> result) {
  if (result.ok()) return *std::move(result);
  const Error& error = result.error();
  const auto is_about = [&](std::string_view field) {
    return error.message().starts_with("from_dlpack: " + std::string(field));
  };
  const bool is_malformed = error.code() == EINVAL && is_about("DL");
  if (is_malformed || is_about("DLTensor.strides") || is_about("DLTensor.data")) {
    raise_buffer_error(error.message());
  }
  if (error.code() == ENOTSUP) raise_type_error(error.message());
  raise(error);
}

/// Imports a tensor whose producer was called with `stream`.
template <class Tensor>
PyDeviceArray import_tensor(Tensor tensor, const ConsumerStream& stream,
                            const DlpackImportOptions& options) {
  ImportedTensor imported = or_import_error(
      call_foreign([&] { return from_dlpack(std::move(tensor), stream, options); }));
  auto array = make_object<PyDeviceArray>(std::move(imported.schema), std::move(imported.array));
  array.writable = !imported.read_only;
  return array;
}

/// Exports an object of this module, ordered as DLPack's stream None requires on its device.
DlpackTensor export_by_default(nb::handle object);

/// Imports through the function table of the object's type; returns nullopt if it has no usable
/// table.
std::optional<PyDeviceArray> import_by_table(nb::handle object, const DlpackImportOptions& options);

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_DLPACK_COMMON_HPP
