#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {
struct Outer {
  std::int64_t n;
};
}

namespace ns {

struct Inner {
  Outer& outer;
  std::size_t size;
};

namespace deep {
using Alias = std::int32_t;
enum class Color : std::uint8_t { kRed };
}  // namespace deep

template <typename T>
struct Template {
  T value;
};

template <>
struct Template<int> {
  Template<char>* other;
};

class Derived : public Inner {
 public:
  int Method() { return not_declared_but_the_body_is_not_read; }

 private:
  deep::Color color;
  static int shared;
};

}  // namespace ns

#define TRUTH true
