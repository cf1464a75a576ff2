// Structs as the text that FletchingProducerVerifyDump compares (tests/roundtrip/README.md).
#ifndef FLETCHING_TESTS_ROUNDTRIP_DUMP_HPP
#define FLETCHING_TESTS_ROUNDTRIP_DUMP_HPP

#include <string>

#include "fletching/abi.h"

namespace fletching::roundtrip {

/// Every field of both and of everything below them, one line each. Reads no buffer and knows no
/// format. Throws Error (EINVAL) for structs that check() refuses, and for counts in the metadata
/// that are negative.
std::string dump(const ArrowSchema& schema, const ArrowDeviceArray& array);

}  // namespace fletching::roundtrip

#endif  // FLETCHING_TESTS_ROUNDTRIP_DUMP_HPP
