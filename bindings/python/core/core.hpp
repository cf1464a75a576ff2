// SPDX-License-Identifier: Apache-2.0
//
// The Python objects of the module, and their conversions.
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

/// fletching.Schema.
struct PySchema {
  Foreign<SharedSchema> shared;
};

/// What __dlpack__ has described, where it is the same each time: in memory of the CPU, no event.
using OwnTensor = std::optional<Foreign<std::shared_ptr<const DLManagedTensorVersioned>>>;

/// The objects that own the memory of an array, for Python's collector; NULL for other arrays. The
/// array keeps them alive.
using Owners = std::shared_ptr<const std::vector<PyObject*>>;

/// fletching.Array: in memory of the CPU.
struct PyArray {
  Foreign<SharedSchema> schema;
  Foreign<SharedArray> shared;
  OwnTensor tensor{};
  Owners owners{};
};

/// fletching.DeviceArray: with a device and an event.
struct PyDeviceArray {
  Foreign<SharedSchema> schema;
  Foreign<SharedDeviceArray> shared;
  /// The producer has said that the memory may be written to.
  bool writable = false;
  /// What __cuda_array_interface__ has described, as long as the object: a stream among it.
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

/// A stream argument, which every function reads in this way.
struct GivenStream {
  int64_t number;  ///< -1, which DLPack has, or the handle as far as 63 bits hold it
  uintptr_t handle;
  bool is_object;  ///< whose 0 is the default stream
};
/// Reads a number, or an object that has __cuda_stream__, `ptr`, `handle` or `cuda_stream`. Raises
/// TypeError for others, and for None; Error with EINVAL for a number that is no handle, but for
/// -1.
GivenStream read_stream(nb::handle stream);
/// A stream for data on a device of this type. Raises what read_stream does, and Error with EINVAL
/// for -1.
Stream stream_of(nb::handle stream, ArrowDeviceType type);

/// The value of __cuda_array_interface__. Raises AttributeError without one.
nb::object cuda_array_interface_of(nb::handle self, PyDeviceArray& array);
void bind_waiter(nb::module_& module);
/// Called before bind_python: functions of atexit run in reverse order.
void bind_end_of_waiters();
void bind_async_stream(nb::module_& module);
void bind_validate(nb::module_& module);

/// Errors, which begin with `method`: EINVAL for a schema, or one below it, that is released, has
/// format NULL, a list of children that is wrong, or is nested too deep (see Shared::column): the
/// rest of the module reads schemas without a check.
Status check_schema(const ArrowSchema& schema, const char* method) noexcept;
/// Moves a schema in that passes the check.
Result<SharedSchema> share_checked(Schema&& schema, const char* method) noexcept;

/// The type in words: "list<int32>", "struct<a: int32, b: string>", "unknown(x)".
std::string type_text(const ArrowSchema& schema);

/// Raises fletching.Error for a requested schema, a capsule or None, that does not fit the data:
/// another kind of type, or another number of fields. One that fits is not a demand: the data keeps
/// its own schema.
void check_requested(nb::handle requested, const ArrowSchema& own, const char* method);

/// What `object` has to give by its methods, or nothing when it lacks them.
std::optional<PySchema> import_schema(nb::handle object);
/// The schema itself, or imported: of pyarrow's schemas, for example.
PySchema to_schema(nb::handle object);
std::optional<PyArray> import_array(nb::handle object);
/// Waits for the event, without the GIL; Ctrl-C interrupts it. Raises the Error of the wait.
void synchronize(const PyDeviceArray& self);
std::optional<PyDeviceArray> import_device_array(nb::handle object);

/// The stream of `object` as a Python object, not valid when it has none.
nb::object import_array_stream(nb::handle object);
nb::object import_device_array_stream(nb::handle object);

/// A mapping of texts as ArrowSchema.metadata; of no pairs, nothing. Raises TypeError for another
/// mapping.
std::string encode_metadata_of(nb::handle mapping);

/// Keys and values as bytes; of a key that occurs more than once, the last.
nb::dict to_dictionary(const MetadataView& metadata);

/// The number of the field under an index or a name; -1 for none.
int64_t find_column(const ArrowSchema& schema, nb::handle column);
/// The same for a column. Raises Error for none.
int64_t column_index(const ArrowSchema& schema, nb::handle column);

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_CORE_HPP
