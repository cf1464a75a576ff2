// Structs as the text that producer.h defines.
#ifndef FLETCHING_TESTS_ROUNDTRIP_DESCRIBE_HPP
#define FLETCHING_TESTS_ROUNDTRIP_DESCRIBE_HPP

#include <string>
#include <string_view>

#include "fletching/abi.h"

namespace fletching::roundtrip {

/// The text of FletchingProducerDescribe, made from the structs. Reads buffers, so they have to be
/// in host memory. Throws Error for structs that check() refuses, for another device (ENOTSUP), and
/// for a format that this text has no rule for (ENOTSUP).
std::string describe(const ArrowSchema& schema, const ArrowDeviceArray& array);

/// Throws Error (EBADMSG) with the first line that differs.
void require_same_text(std::string_view seen, std::string_view expected);

}  // namespace fletching::roundtrip

#endif  // FLETCHING_TESTS_ROUNDTRIP_DESCRIBE_HPP
