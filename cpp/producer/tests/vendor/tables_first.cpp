// Our headers first, then the vendors'.
// clang-format off
#include "tables.hpp"
#include "headers.hpp"
// clang-format on
#include "together.hpp"
