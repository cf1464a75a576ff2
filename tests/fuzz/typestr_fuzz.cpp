// SPDX-License-Identifier: Apache-2.0
//
// Type strings and descriptions of the CUDA Array Interface: a parsed typestr formats to the same
// text, and any description is either accepted or rejected.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fletching/cuda_array_interface.hpp"
#include "require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using fletching::fuzz::require;
  namespace cai = fletching::cuda_array_interface;
  fletching::fuzz::Input input(data, size);

  const auto flags = input.take<std::uint8_t>();
  std::vector<std::int64_t> shape(flags % 4);
  for (std::int64_t& extent : shape) extent = input.take<std::int64_t>();
  std::vector<std::int64_t> strides((flags >> 2) % 4);
  for (std::int64_t& stride : strides) stride = input.take<std::int64_t>();
  cai::Interface says;
  says.shape = shape;
  says.pointer = input.take<std::uint64_t>();
  says.version = input.take<std::uint8_t>();
  if ((flags & 0x10) != 0) says.strides = strides;
  if ((flags & 0x20) != 0) says.stream = input.take<std::int64_t>();
  const std::string typestr(input.rest());
  says.typestr = typestr;
  cai::Interface mask;
  mask.shape = strides;
  mask.typestr = "<t1";
  mask.pointer = says.pointer;
  if ((flags & 0x40) != 0) says.mask = &mask;
  if ((flags & 0x80) != 0) mask.mask = &mask;  // a mask that is its own mask

  if (const auto parts = cai::parse_typestr(typestr)) {
    const std::string written = cai::format_typestr(*parts);
    const auto again = cai::parse_typestr(written);
    require(again && cai::format_typestr(*again) == written,
            "what was written is read, and written the same way");
  }
  for (const cai::Violation& violation : cai::check(says)) {
    require(!violation.rule.empty(), "a violation names its rule");
  }
  return 0;
}
