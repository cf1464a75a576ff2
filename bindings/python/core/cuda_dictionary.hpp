// SPDX-License-Identifier: Apache-2.0
//
// What a dictionary of the CUDA Array Interface says, whatever its values are: only the methods of
// builtin types are called, except __index__ and the attribute of a mask. The rules are those of
// fletching/cuda_array_interface.hpp, and of the types of Python's values here.
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

/// A dictionary that was read, and those of its masks.
struct CudaDictionary {
  cai::Interface says;
  // By the index of the key in cai::kKeys.
  std::array<bool, cai::kKeys.size()> usable{};  // given, and of the right type
  std::array<std::optional<std::string>, cai::kKeys.size()> wrong;
  std::optional<std::string> no_dictionary;
  std::string missing;         // the required keys that are not there
  bool no_address = false;     // the pointer is an integer, but not one of 64 bits
  std::string no_handle;       // the number of a stream that is not one of 64 bits
  bool exceeds_words = false;  // a number was cut to 63 bits
  std::unique_ptr<CudaDictionary> mask;
  int depth = 0;

  // What `says` points to.
  std::vector<int64_t> shape, strides;
  std::string typestr;
  std::vector<cai::Field> descr;
  std::deque<std::vector<cai::Field>> fields;
  std::deque<std::vector<int64_t>> shapes;
  std::deque<std::string> texts;
};

/// Raises only what is not an Exception, such as KeyboardInterrupt, and MemoryError.
std::unique_ptr<CudaDictionary> read_cuda_dictionary(nb::handle interface);

/// A rule that a dictionary breaks.
struct CudaViolation {
  std::string rule, key, severity, found, hint;
};

/// In the order of the specification, those of masks last.
std::vector<CudaViolation> check_cuda_dictionary(const CudaDictionary& dictionary);

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_CUDA_DICTIONARY_HPP
