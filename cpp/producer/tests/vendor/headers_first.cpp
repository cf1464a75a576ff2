// The vendors' headers and their macros first, then the tables.
// clang-format off
#include "headers.hpp"
#include "tables.hpp"
// clang-format on
#include "compare_declarations.hpp"
