// SPDX-License-Identifier: Apache-2.0
//
// The common part of the methods and the function table of DLPack.
#ifndef FLETCHING_PYTHON_DLPACK_COMMON_HPP
#define FLETCHING_PYTHON_DLPACK_COMMON_HPP

#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "array_common.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/dlpack_import.hpp"

namespace fletching::python {

/// What DLPack asks of a producer that cannot export.
template <class T>
T or_buffer_error(Result<T> result) {
  if (result.ok()) return *std::move(result);
  if (result.error().code() == ENOMEM) raise(result.error());
  raise_buffer_error(result.error().message());
}
/// What from_dlpack raises: TypeError for a type that Arrow lacks, BufferError for memory that is
/// malformed or would have to be copied, Error for a failure of the driver.
template <class T>
T or_import_error(Result<T> result) {
  if (result.ok()) return *std::move(result);
  const Error& error = result.error();
  const auto is_about = [&](std::string_view field) { return error.message().starts_with(field); };
  const bool is_malformed = error.code() == EINVAL && is_about("DL");
  if (is_malformed || is_about("DLTensor.strides") || is_about("DLTensor.data")) {
    raise_buffer_error(error.message());
  }
  if (error.code() == ENOTSUP) raise_type_error(error.message());
  raise(error);
}

/// A tensor whose producer was called with `stream`, as an object.
template <class Tensor>
PyDeviceArray import_tensor(Tensor tensor, const ConsumerStream& stream,
                            const DlpackImportOptions& options) {
  ImportedTensor imported = or_import_error(
      call_foreign([&] { return from_dlpack(std::move(tensor), stream, options); }));
  auto array = make_object<PyDeviceArray>(std::move(imported.schema), std::move(imported.array));
  array.writable = !imported.read_only;
  return array;
}

/// The tensor of an object of ours, after what DLPack's None means on its device.
DlpackTensor export_by_default(nb::handle object);

/// The tensor of an object whose type has a usable function table; empty for others.
std::optional<PyDeviceArray> import_by_table(nb::handle object, const DlpackImportOptions& options);

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_DLPACK_COMMON_HPP
