// SPDX-License-Identifier: Apache-2.0
//
// Reads a dictionary of the CUDA Array Interface with values of any type. Calls only methods of
// builtin types, except __index__ and a mask's attribute. The rules are in
// fletching/cuda_array_interface.hpp; the rules for the types of Python values are here.
#ifndef FLETCHING_PYTHON_CUDA_DICTIONARY_HPP
#define FLETCHING_PYTHON_CUDA_DICTIONARY_HPP

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fletching/cuda_array_interface.hpp"
#include "python.hpp"

namespace fletching::python {

namespace cai = cuda_array_interface;

/// The contents of a dictionary and of its masks.
struct CudaDictionary {
  cai::Interface says;
  // Indexed like cai::kKeys.
  std::array<bool, cai::kKeys.size()> usable{};  // present, with the right type
  std::array<std::optional<std::string>, cai::kKeys.size()> wrong;
  std::optional<std::string> no_dictionary;
  std::string missing;         // the missing required keys
  bool no_address = false;     // the pointer is an integer that does not fit 64 bits
  std::string no_handle;       // a stream handle that does not fit 64 bits
  bool exceeds_words = false;  // an integer was clamped to 63 bits
  std::unique_ptr<CudaDictionary> mask;
  int depth = 0;

  // The memory that `says` points to.
  std::vector<int64_t> shape, strides;
  std::string typestr;
  std::vector<cai::Field> descr;
  std::deque<std::vector<cai::Field>> fields;
  std::deque<std::vector<int64_t>> shapes;
  std::deque<std::string> texts;
};

/// Raises only MemoryError and exceptions that are not an Exception, such as KeyboardInterrupt.
std::unique_ptr<CudaDictionary> read_cuda_dictionary(nb::handle interface);

/// A violated rule of a dictionary.
struct CudaViolation {
  std::string rule, key, severity, found, hint;
};

/// Returns the violations in the order of the specification, violations in masks last.
std::vector<CudaViolation> check_cuda_dictionary(const CudaDictionary& dictionary);

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_CUDA_DICTIONARY_HPP
