// Fails if a function of tiny.hpp is wrong, except the untested one.
#include <cstdio>

#include "tiny.hpp"

namespace {

bool is_right() {
  using namespace tiny;
  Point point;
  return add_up(4) == 14 && call(5, 3) == 2 && is_between(2, 2, 3) && is_between(3, 2, 3) &&
         !is_between(1, 2, 3) && !is_between(4, 2, 3) && find(&point, true) == &point &&
         find(&point, false) == nullptr && name(true) == "named" && name(false) == "none" &&
         point.x == 0 && is_first(1, 1) && !is_first(1, 2) && !is_first(name(true), name(true)) &&
         in_lambda(3) == 6 && braces(0) == 1 && braces(1) == 3 && braces(7) == 2 &&
         in_macro(5) == 5 && in_macro(0) == 3;
}

}  // namespace

int main() {
  tiny::untested(0);
  if (is_right()) return 0;
  std::puts("[  FAILED  ] Tiny.IsRight (0 ms)");
  return 1;
}
