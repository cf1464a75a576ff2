// Writes the structs' cells for build/roundtrip.json (tests/roundtrip/README.md).
#ifndef FLETCHING_TESTS_CELLS_HPP
#define FLETCHING_TESTS_CELLS_HPP

#include <cstdint>
#include <string>

namespace fletching::testing {

/// Appends the cell of a struct, such as "ArrowSchema", as one line to the file named by
/// FLETCHING_CELLS; does nothing if that is unset. `reason`: the problem, or empty. Returns false
/// on failure.
bool append_cell(const std::string& struct_name, const std::string& direction,
                 std::int64_t asserted, const std::string& reason);

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_CELLS_HPP
