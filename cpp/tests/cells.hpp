// Writes the cells of the structs for build/roundtrip.json (tests/roundtrip/README.md).
#ifndef FLETCHING_TESTS_CELLS_HPP
#define FLETCHING_TESTS_CELLS_HPP

#include <cstdint>
#include <string>

namespace fletching::testing {

/// Appends the cell of a struct, such as "ArrowSchema", as one line to the file that
/// FLETCHING_CELLS names; nothing when it is unset. `reason`: what went wrong, or empty. Returns
/// whether it could.
bool append_cell(const std::string& struct_name, const std::string& direction,
                 std::int64_t asserted, const std::string& reason);

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_CELLS_HPP
