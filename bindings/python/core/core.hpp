// SPDX-License-Identifier: Apache-2.0
//
// The module's Python objects and their conversions.
#ifndef FLETCHING_PYTHON_CORE_HPP
#define FLETCHING_PYTHON_CORE_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fletching/device_stream.hpp"
#include "fletching/dlpack.h"
#include "fletching/metadata.hpp"
#include "fletching/owner.hpp"
#include "fletching/shared.hpp"
#include "python.hpp"

namespace fletching::python {

/// The object fletching.Schema.
struct PySchema {
  Foreign<SharedSchema> shared;
};

/// The cached tensor of __dlpack__ for arrays whose tensor never changes: CPU memory without an
/// event.
using OwnTensor = std::optional<Foreign<std::shared_ptr<const DLManagedTensorVersioned>>>;

/// The objects that own an array's memory, for Python's collector; NULL if there are none. The
/// array keeps them alive.
using Owners = std::shared_ptr<const std::vector<PyObject*>>;

/// The object fletching.Array, which is in CPU memory.
struct PyArray {
  Foreign<SharedSchema> schema;
  Foreign<SharedArray> shared;
  OwnTensor tensor{};
  Owners owners{};
};

/// The object fletching.DeviceArray, with a device and an event.
struct PyDeviceArray {
  Foreign<SharedSchema> schema;
  Foreign<SharedDeviceArray> shared;
  /// Whether the producer allows writes to the memory.
  bool writable = false;
  /// The cached data of __cuda_array_interface__, including a stream. Lives as long as the object.
  std::optional<Foreign<std::shared_ptr<const void>>> described{};
  OwnTensor tensor{};
  Owners owners{};
};

void bind_on_capture(nb::module_& module);
void bind_schema(nb::module_& module);
void bind_array(nb::module_& module);
void bind_device_array(nb::module_& module);
void bind_array_stream(nb::module_& module);
void bind_device_array_stream(nb::module_& module);
void bind_buffer(nb::module_& module);
void bind_build(nb::module_& module);
void bind_struct_capsules(nb::module_& module);
void bind_dlpack(nb::module_& module);
void bind_cuda_array(nb::module_& module);
void bind_streams(nb::module_& module);
void bind_exchange(nb::module_& module);

/// A stream argument after read_stream.
struct GivenStream {
  int64_t number;  ///< -1, which DLPack has, or the handle as far as 63 bits hold it
  uintptr_t handle;
  bool is_object;  ///< whose 0 is the default stream
};
/// Reads an integer, or an object with __cuda_stream__, `ptr`, `handle` or `cuda_stream`. Raises
/// TypeError for other objects and for None, and Error with EINVAL for an integer that is neither a
/// handle nor -1.
GivenStream read_stream(nb::handle stream);
/// Returns a stream for data on a device of this type. Raises the exceptions of read_stream, and
/// Error with EINVAL for -1.
Stream stream_of(nb::handle stream, ArrowDeviceType type);

/// Returns the value of __cuda_array_interface__. Raises AttributeError if the array has none.
nb::object cuda_array_interface_of(nb::handle self, PyDeviceArray& array);
void bind_waiter(nb::module_& module);
/// Must be called before bind_python: atexit functions run in reverse order.
void bind_end_of_waiters();
void bind_async_stream(nb::module_& module);
void bind_validate(nb::module_& module);

/// Checks a schema. Fails with EINVAL, in a message that begins with `method`, if the schema or a
/// descendant is released, has format NULL, has an invalid list of children, or is nested too deep
/// (see Shared::column). The rest of the module reads schemas without checking them.
Status check_schema(const ArrowSchema& schema, const char* method) noexcept;
/// Checks a schema and moves it into a shared schema.
Result<SharedSchema> share_checked(Schema&& schema, const char* method) noexcept;

/// Describes the type: "list<int32>", "struct<a: int32, b: string>", "unknown(x)".
std::string type_text(const ArrowSchema& schema);

/// Raises fletching.Error if a requested schema (a capsule or None) does not match the data:
/// another kind of type, or another number of fields. A matching request has no effect: the data
/// keeps its own schema.
void check_requested(nb::handle requested, const ArrowSchema& own, const char* method);

/// Imports the schema from the methods of `object`; returns nullopt if it has none.
std::optional<PySchema> import_schema(nb::handle object);
/// Returns the schema if `object` is one, otherwise imports it, for example from a pyarrow schema.
PySchema to_schema(nb::handle object);
std::optional<PyArray> import_array(nb::handle object);
/// Waits for the event without the GIL; Ctrl-C interrupts the wait. Raises the wait's Error.
void synchronize(const PyDeviceArray& self);
std::optional<PyDeviceArray> import_device_array(nb::handle object);

/// Returns the stream of `object` as a Python object, or an invalid handle if it has none.
nb::object import_array_stream(nb::handle object);
nb::object import_device_array_stream(nb::handle object);

/// Encodes a mapping of strings as ArrowSchema.metadata; returns an empty string for an empty
/// mapping. Raises TypeError for any other mapping.
std::string encode_metadata_of(nb::handle mapping);

/// Returns keys and values as bytes. For a repeated key, the last value wins.
nb::dict to_dictionary(const MetadataView& metadata);

/// Returns the field's index for an index or a name; -1 if no field matches.
int64_t find_column(const ArrowSchema& schema, nb::handle column);
/// Overload for a column. Raises Error if no column matches.
int64_t column_index(const ArrowSchema& schema, nb::handle column);

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_CORE_HPP
