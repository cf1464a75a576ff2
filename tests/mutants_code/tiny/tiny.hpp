// One place for each kind of mutant, for ../test_mutants_code.py.
#ifndef FLETCHING_TINY_HPP
#define FLETCHING_TINY_HPP

#include <cstddef>
#include <string>

#define TINY_MACRO(a) ((a) < 7)
#define TINY_KEEP(kept, given) \
  if (given) (kept) = (given)

namespace tiny {

constexpr int kSize = 1 + 2;  // a constant, which is not mutated
static_assert(kSize < 4);

enum class Color { kRed = 1 };

struct Point {
  int x = 0;  // 1 in a mutant
  int y{};
};

constexpr int add_up(int to) {
  int sum = 0;
  for (int i = 0; i < to; ++i) sum += i + 2;
  return sum;
}
static_assert(add_up(4) == 14);

inline int difference(int left, int right) { return left - right; }

inline int call(int left, int right) { return difference(left, right); }

inline bool is_between(int value, int low, int high) { return low <= value && !(value > high); }

inline Point* find(Point* first, bool wanted) {
  if (!wanted) return nullptr;
  return first;
}

inline std::string name(bool is_known) {
  std::string text = "name";
  if (!is_known) {
    text.clear();
    text += "none";
    return text;
  }
  text += "d";
  return text;
}

template <class Value>
  requires(sizeof(Value) < 64)
bool is_first(const Value& value, const Value& other) noexcept(sizeof(Value) < 8) {
  if constexpr (sizeof(Value) > 16) return false;
  int counts[sizeof(Value) * 2] = {};
  static_cast<void>(counts);
  return value == other;
}

inline int in_lambda(int given) {
  const auto twice = [given] { return given * 2; };
  return twice();
}

inline long long braces(unsigned number) {
  const long long wide{1};
  const long long size{number > 0 ? 2 : 0};
  return TINY_MACRO(static_cast<int>(number)) ? wide + size : size;
}

inline int in_macro(int given) {
  int kept = 3;
  TINY_KEEP(kept, given);
  return kept;
}

/// No test calls this function.
inline int untested(int value) { return value + 1; }

}  // namespace tiny

#endif  // FLETCHING_TINY_HPP
