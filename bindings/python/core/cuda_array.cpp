// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array_common.hpp"
#include "cuda_dictionary.hpp"
#include "fletching/cuda_array_import.hpp"

namespace fletching::python {
namespace {

// --- Export ---

/// The mask of an array: an object with a separate dictionary.
struct CudaArrayMask {
  nb::object array;  // owns the memory and the stream
  nb::dict interface;
};

nb::object to_tuple(std::span<const int64_t> numbers) {
  nb::list list = empty<nb::list>();
  for (const int64_t number : numbers) list.append(number);
  return nb::steal(PyList_AsTuple(list.ptr()));
}

nb::dict to_dictionary(nb::handle owner, const cai::Interface& says) {
  nb::dict out = empty<nb::dict>();
  out["shape"] = to_tuple(says.shape);
  out["typestr"] = nb::str(says.typestr.data(), says.typestr.size());
  out["data"] = nb::make_tuple(says.pointer, says.read_only);
  out["version"] = says.version;
  out["strides"] = says.strides ? to_tuple(*says.strides) : nb::none();
  out["stream"] = says.stream ? nb::cast(*says.stream) : nb::none();
  if (says.mask != nullptr) {
    out["mask"] = nb::cast(CudaArrayMask{nb::borrow(owner), to_dictionary(owner, *says.mask)});
  }
  return out;
}

/// If the interface cannot describe an array, the attribute does not exist, so that hasattr is
/// correct.
[[noreturn]] void raise_no_attribute(const Error& error) {
  if (error.code() != ENOTSUP) raise(error);
  throw nb::attribute_error(error.message().c_str());
}

// --- Import ---

/// Numba has an equivalent variable. Only "0" leaves synchronization to the user.
bool is_synchronized_by_default() {
  const char* const value = std::getenv("FLETCHING_CUDA_ARRAY_INTERFACE_SYNC");
  return value == nullptr || std::string_view(value) != "0";
}

void refuse_wrong(const CudaDictionary& dictionary) {
  for (const CudaViolation& found : check_cuda_dictionary(dictionary)) {
    if (found.severity != "error") continue;
    const std::string key = found.key.empty() ? "" : "['" + found.key + "']";
    raise_type_error("from_cuda_array_interface: __cuda_array_interface__" + key +
                     ": invalid: got " + found.found + " (rule " + found.rule +
                     "); hint: " + found.hint);
  }
  if (dictionary.exceeds_words) {
    raise_type_error("from_cuda_array_interface: number too large: expected at most 2**63 - 1");
  }
}

constinit Name kAttribute("__cuda_array_interface__");

nb::object interface_of(nb::handle object) {
  if (PyDict_Check(object.ptr())) return nb::borrow(object);
  nb::object found = find_attribute(object, kAttribute);
  if (!found.is_valid()) {
    raise_type_error(std::string("from_cuda_array_interface: object has no ") + kAttribute.text() +
                     ": expected a dictionary or an object that has it");
  }
  return found;
}

PyDeviceArray import_cuda_array(nb::handle object, nb::handle owner, bool synchronize,
                                nb::handle stream, bool as_storage) {
  const nb::object interface = interface_of(object);
  const std::unique_ptr<CudaDictionary> dictionary = read_cuda_dictionary(interface);
  refuse_wrong(*dictionary);
  CudaArrayImportOptions options;
  options.synchronize = synchronize && is_synchronized_by_default();
  options.as_storage = as_storage;
  if (!stream.is_none()) options.consumer_stream = stream_of(stream, ARROW_DEVICE_CUDA);
  // The dictionary contains the mask.
  const nb::object kept = nb::make_tuple(owner.is_none() ? object : owner, interface);
  Reference reference(kept);
  Result<ImportedTensor> imported = call_foreign([&] {
    return detail::in_operation("from_cuda_array_interface", [&] {
      return detail::import_cuda_array(dictionary->says, reference, options);
    });
  });
  if (!imported.ok()) {
    const Error& error = imported.error();
    if (error.code() == ENOTSUP || error.code() == EINVAL) raise_type_error(error.message());
    raise(error);
  }
  auto array = make_object<PyDeviceArray>(std::move(imported->schema), std::move(imported->array));
  array.writable = !imported->read_only;
  array.owners = std::make_shared<const std::vector<PyObject*>>(1, kept.ptr());
  return array;
}

nb::object check_interface(nb::handle interface) {
  const nb::object violation = nb::module_::import_("fletching._violation").attr("Violation");
  nb::list out = empty<nb::list>();
  for (const CudaViolation& one : check_cuda_dictionary(*read_cuda_dictionary(interface))) {
    out.append(violation(one.rule, one.key, one.severity, one.found, one.hint));
  }
  return out;
}

}  // namespace

nb::object cuda_array_interface_of(nb::handle self, PyDeviceArray& array) {
  const nb::ft_object_guard guard(self);
  if (!array.described) {
    DeviceArray view = unwrap(array.shared->view());
    const CudaArrayExportOptions options{.read_only = !array.writable, .mask = true};
    Result<CudaArray> made = call_foreign([&] {
      return detail::in_operation("__cuda_array_interface__", [&]() -> Result<CudaArray> {
        auto state = detail::describe(schema_of(array), view, std::nullopt, options);
        if (!state) return std::move(state).error();
        return CudaArray(*std::move(state));
      });
    });
    if (!made.ok()) raise_no_attribute(made.error());
    Foreign<std::shared_ptr<const void>> described(
        std::make_shared<const CudaArray>(*std::move(made)), true);
    // Another thread may have set it first.
    if (!array.described) array.described.emplace(std::move(described));
  }
  return to_dictionary(self,
                       static_cast<const CudaArray*>((**array.described).get())->array_interface());
}

void bind_cuda_array(nb::module_& module) {
  nb::class_<CudaArrayMask>(module, "CudaArrayMask", nb::is_final(),
                            "The mask in the __cuda_array_interface__ of an array.")
      .def_prop_ro(
          "__cuda_array_interface__", [](const CudaArrayMask& self) { return self.interface; },
          nb::sig("def __cuda_array_interface__(self) -> dict[str, object]"));
  module.def(
      "from_cuda_array_interface", &import_cuda_array, nb::arg("object").none(),
      nb::arg("owner") = nb::none(), nb::arg("sync") = true, nb::kw_only(),
      nb::arg("stream") = nb::none(), nb::arg("as_storage") = false,
      nb::sig("def from_cuda_array_interface(object: object, owner: object = None, sync: bool = "
              "True, *, stream: object = None, as_storage: bool = False) -> DeviceArray"),
      "Imports the array that __cuda_array_interface__ describes. `object` has this attribute,\n"
      "or is the dictionary. `owner`, or else the object, is kept until the array is released.\n"
      "The event of the array completes after the current work on the dictionary's stream,\n"
      "unless `sync` is False or the environment variable FLETCHING_CUDA_ARRAY_INTERFACE_SYNC\n"
      "is 0: you must then prevent data races. `stream`, as in wait_on, is the stream on which\n"
      "you use the data: the producer's stream waits for it at the release. `as_storage` is as\n"
      "in from_dlpack. Raises TypeError with the rule for a dictionary that violates one, and\n"
      "Error for a driver error. CUDA Array Interface, version 3.");
  module.def(
      "check_cuda_array_interface", &check_interface, nb::arg("interface").none(),
      nb::sig("def check_cuda_array_interface(interface: object) -> list[fletching._violation."
              "Violation]"),
      "Returns the violations in a dictionary and in those of its masks. Raises no Exception,\n"
      "whatever the values do, and reads no device memory.");
}

}  // namespace fletching::python
