// Which buffers a format has, and how large they are.
#ifndef FLETCHING_TESTS_ROUNDTRIP_LAYOUT_HPP
#define FLETCHING_TESTS_ROUNDTRIP_LAYOUT_HPP

#include <cstdint>
#include <vector>

#include "fletching/abi.h"

namespace fletching::roundtrip {

/// The size of every buffer of the array, in bytes. Fails where the format is not known, where it
/// has another number of buffers, and where a length or an offset cannot be right.
std::vector<std::int64_t> buffer_sizes(const char* format, const ArrowArray& array);

}  // namespace fletching::roundtrip

#endif  // FLETCHING_TESTS_ROUNDTRIP_LAYOUT_HPP
