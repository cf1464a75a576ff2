// SPDX-License-Identifier: Apache-2.0
//
// Moves structs of fletching.abi into and out of capsules.
#include <cstdint>
#include <string>
#include <utility>

#include <nanobind/stl/string.h>

#include "capsule.hpp"
#include "core.hpp"

namespace fletching::python {
namespace {

/// Calls `use` with a pointer of the struct type that the capsule name selects.
template <class Use>
auto with_type(const std::string& name, const Use& use) {
  if (name == CapsuleOf<ArrowSchema>::kName) return use(static_cast<ArrowSchema*>(nullptr));
  if (name == CapsuleOf<ArrowArray>::kName) return use(static_cast<ArrowArray*>(nullptr));
  if (name == CapsuleOf<ArrowDeviceArray>::kName)
    return use(static_cast<ArrowDeviceArray*>(nullptr));
  if (name == CapsuleOf<ArrowArrayStream>::kName)
    return use(static_cast<ArrowArrayStream*>(nullptr));
  if (name == CapsuleOf<ArrowDeviceArrayStream>::kName) {
    return use(static_cast<ArrowDeviceArrayStream*>(nullptr));
  }
  raise_type_error("capsule: no such struct: got " + name);
}

nb::object move_to_capsule(uintptr_t address, const std::string& name) {
  return with_type(name, [&]<class Raw>(Raw* /*type*/) {
    auto* const raw = reinterpret_cast<Raw*>(address);
    if (detail::base(*raw).release == nullptr) raise_consumed(name.c_str(), "to_capsule");
    return to_capsule(Owner<Raw>(raw));
  });
}

void move_from_capsule(nb::handle capsule, uintptr_t address, const std::string& name) {
  with_type(name, [&]<class Raw>(Raw* /*type*/) {
    Owner<Raw> owner(look_into<Raw>(capsule, "from_capsule"));
    owner.move_to(reinterpret_cast<Raw*>(address));
  });
}

}  // namespace

void bind_struct_capsules(nb::module_& module) {
  module.def("move_to_capsule", &move_to_capsule, nb::arg("address"), nb::arg("name"),
             nb::sig("def move_to_capsule(address: int, name: str) -> "
                     "typing_extensions.CapsuleType"));
  module.def("move_from_capsule", &move_from_capsule, nb::arg("capsule"), nb::arg("address"),
             nb::arg("name"),
             nb::sig("def move_from_capsule(capsule: object, address: int, name: str) -> None"));
}

}  // namespace fletching::python
