// The tables first, then the vendors' headers.
// clang-format off
#include "tables.hpp"
#include "headers.hpp"
// clang-format on
#include "compare_declarations.hpp"
