// Cells: what a test did, for build/roundtrip.json (tests/roundtrip/README.md).
#ifndef FLETCHING_TESTS_ROUNDTRIP_CELLS_HPP
#define FLETCHING_TESTS_ROUNDTRIP_CELLS_HPP

#include <cstdint>
#include <string>

namespace fletching::roundtrip {

/// One cell of language "cpp".
struct Cell {
  std::string backend;          // "cpu"; "none" for a struct
  std::string subject_kind;     // "struct", "case"
  std::string subject;          // "ArrowSchema", "int32"
  std::string direction;        // "c_writes", "stream"
  std::string status = "real";  // "stand-in", "absent"
  std::string reason;           // what went wrong, or why it is absent; empty when ok
  std::int64_t asserted = 0;
  std::int64_t releases = 0;
  bool ok = false;
};

/// Appends the cell as one line to the file that FLETCHING_CELLS names; nothing when it is unset.
/// Returns an empty text, or what went wrong.
std::string append_cell(const Cell& cell);

}  // namespace fletching::roundtrip

#endif  // FLETCHING_TESTS_ROUNDTRIP_CELLS_HPP
