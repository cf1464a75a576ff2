// SPDX-License-Identifier: Apache-2.0
//
// What the methods and the function table of DLPack have in common.
#ifndef FLETCHING_PYTHON_DLPACK_COMMON_HPP
#define FLETCHING_PYTHON_DLPACK_COMMON_HPP

#include <cerrno>
#include <optional>
#include <utility>

#include "array_common.hpp"
#include "fletching/dlpack_import.hpp"
#include "fletching/dlpack_stream.hpp"

namespace fletching::python {

/// What DLPack asks of a producer that cannot export.
template <class T>
T or_buffer_error(Result<T> result) {
  if (result.ok()) return *std::move(result);
  if (result.error().code() == ENOMEM) raise(result.error());
  throw nb::buffer_error(result.error().message().c_str());
}
/// And of a consumer that cannot import.
template <class T>
T or_type_error(Result<T> result) {
  if (result.ok()) return *std::move(result);
  if (result.error().code() == ENOMEM) raise(result.error());
  raise_type_error(result.error().message());
}

/// A tensor whose producer was called with `stream`, as an object.
template <class Tensor>
PyDeviceArray import_tensor(Tensor tensor, const ConsumerStream& stream,
                            const DlpackImportOptions& options) {
  ImportedTensor imported =
      or_type_error(without_gil([&] { return from_dlpack(std::move(tensor), stream, options); }));
  auto array = make_object<PyDeviceArray>(std::move(imported.schema), std::move(imported.array));
  array.writable = !imported.read_only;
  return array;
}

/// The tensor of an object of ours, after what DLPack's None means on its device.
DlpackTensor export_by_default(nb::handle object);

/// The tensor of an object whose type has a function table that can be used; nothing of others.
std::optional<PyDeviceArray> import_by_table(nb::handle object, const DlpackImportOptions& options);

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_DLPACK_COMMON_HPP
