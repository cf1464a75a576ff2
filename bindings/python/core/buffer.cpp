// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string_view.h>

#include <bit>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "array_common.hpp"
#include "buffer_view.hpp"
#include "fletching/array_builder.hpp"
#include "fletching/schema_builder.hpp"
#include "fletching/stream_adapters.hpp"

namespace fletching::python {
namespace {

std::string_view integer_format(bool is_signed, Py_ssize_t bytes) {
  switch (bytes) {
    case 1:
      return is_signed ? "c" : "C";
    case 2:
      return is_signed ? "s" : "S";
    case 4:
      return is_signed ? "i" : "I";
    case 8:
      return is_signed ? "l" : "L";
    default:
      return {};
  }
}

/// Returns the Arrow format of elements in the struct module's notation; empty if Arrow has none.
std::string_view arrow_format(std::string_view text, Py_ssize_t bytes) {
  constexpr bool kLittle = std::endian::native == std::endian::little;
  if (!text.empty() && std::string_view("@=<>!").find(text.front()) != std::string_view::npos) {
    const char order = text.front();
    text.remove_prefix(1);
    const bool foreign = kLittle ? order == '>' || order == '!' : order == '<';
    if (foreign && bytes > 1) return {};
  }
  if (text.size() != 1) return {};
  constexpr std::string_view kSigned("bhilqn");
  constexpr std::string_view kUnsigned("BHILQNc");
  if (kSigned.find(text) != std::string_view::npos) return integer_format(true, bytes);
  if (kUnsigned.find(text) != std::string_view::npos) return integer_format(false, bytes);
  if (text == "e" && bytes == 2) return "e";
  if (text == "f" && bytes == 4) return "f";
  if (text == "d" && bytes == 8) return "g";
  return {};
}

PyArray from_buffer(nb::handle object, std::string_view name) {
  BufferView view(object);
  if (view->ndim != 1) {
    raise_type_error("from_buffer: number of dimensions is wrong: expected 1, got " +
                     std::to_string(view->ndim));
  }
  const std::string_view given(view->format == nullptr ? "B" : view->format);
  const std::string_view format = arrow_format(given, view->itemsize);
  if (format.empty()) {
    raise_type_error(
        "from_buffer: type of the elements has no Arrow type: expected integers or floating "
        "point numbers of this machine, got format '" +
        std::string(given) + "'" + (given == "?" ? "; hint: Arrow's booleans are bits" : ""));
  }
  Schema schema = unwrap(make_schema({.format = format, .name = name, .flags = 0}));
  const void* const values = view->buf;
  const ArrayValues size{.length = view->len / view->itemsize};
  Owners owners = std::make_shared<const std::vector<PyObject*>>(1, view->obj);
  DeviceArray array = unwrap(make_cpu_array(size, {nullptr, values}, std::move(view)));
  auto made = make_object<PyArray>(std::move(schema), unwrap(to_array(std::move(array))));
  made.owners = std::move(owners);
  return made;
}

}  // namespace

void bind_buffer(nb::module_& module) {
  module.def(
      "from_buffer", &from_buffer, nb::arg("object").none(), nb::kw_only(), nb::arg("name") = "",
      nb::sig("def from_buffer(object: object, *, name: str = \"\") -> Array"),
      "Makes an array without nulls over the memory of an object that has the buffer protocol,\n"
      "such as bytes or a one-dimensional NumPy array. Does not copy: do not change the values\n"
      "while the array or an export of it is used. Raises TypeError for elements that are not\n"
      "numbers, and BufferError for memory that is not contiguous.");
}

}  // namespace fletching::python
