// Foreign structs handed on as our own: the same data under release callbacks of this file.
#ifndef FLETCHING_TESTS_ROUNDTRIP_REEXPORT_HPP
#define FLETCHING_TESTS_ROUNDTRIP_REEXPORT_HPP

#include <cstdint>

#include "fletching/abi.h"

namespace fletching::roundtrip {

/// How many structs this file has filled (children and dictionaries count each), and how many of
/// its release callbacks have run. Any thread.
std::int64_t exported_count() noexcept;
std::int64_t released_count() noexcept;

/// Each moves its sources in, children and dictionaries one by one, and fills `out`, which then
/// releases them. Throws Error or std::bad_alloc; then the sources are as before and `out` is not
/// touched. An array has to fit the schema.
void reexport(ArrowSchema& source, ArrowSchema& out);
void reexport(const ArrowSchema& schema, ArrowDeviceArray& source, ArrowDeviceArray& out);
void reexport(ArrowSchema& schema, ArrowDeviceArray& array, ArrowSchema& out_schema,
              ArrowDeviceArray& out_array);

}  // namespace fletching::roundtrip

#endif  // FLETCHING_TESTS_ROUNDTRIP_REEXPORT_HPP
