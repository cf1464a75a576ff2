// The vendors' headers first, with their macros, then ours.
// clang-format off
#include "headers.hpp"
#include "tables.hpp"
// clang-format on
#include "together.hpp"
