// Whether foreign structs may be walked at all.
#ifndef FLETCHING_TESTS_ROUNDTRIP_CHECK_HPP
#define FLETCHING_TESTS_ROUNDTRIP_CHECK_HPP

#include "fletching/abi.h"

namespace fletching::roundtrip {

/// Each throws Error (EINVAL) that names node and field when something is released, is NULL where
/// it must not be, is negative, or when schema and array have different shapes. Buffers and texts
/// are not read.
void check(const ArrowSchema& schema);
void check(const ArrowSchema& schema, const ArrowArray& array);
void check(const ArrowDeviceArrayStream& stream);

}  // namespace fletching::roundtrip

#endif  // FLETCHING_TESTS_ROUNDTRIP_CHECK_HPP
