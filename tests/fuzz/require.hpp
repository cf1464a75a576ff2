// SPDX-License-Identifier: Apache-2.0
//
// Assertions and input parsing for fuzz targets.
#ifndef FLETCHING_FUZZ_REQUIRE_HPP
#define FLETCHING_FUZZ_REQUIRE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace fletching::fuzz {

/// Ends the program if the library broke a promise; libFuzzer then reports the input.
inline void require(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

/// A release callback that frees nothing.
template <class Base>
void drop(Base* self) {
  self->release = nullptr;
}

/// The input, consumed from the front. Yields zeros when it is used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : left_(reinterpret_cast<const char*>(data), size) {}

  [[nodiscard]] bool empty() const { return left_.empty(); }

  template <class Number>
  Number take() {
    Number number{};
    const std::string_view bytes = take_bytes(sizeof number);
    std::memcpy(&number, bytes.data(), bytes.size());
    return number;
  }
  std::string_view take_bytes(std::size_t count) {
    const std::string_view bytes = left_.substr(0, std::min(count, left_.size()));
    left_.remove_prefix(bytes.size());
    return bytes;
  }
  std::string_view rest() { return take_bytes(left_.size()); }

 private:
  std::string_view left_;
};

}  // namespace fletching::fuzz

#endif  // FLETCHING_FUZZ_REQUIRE_HPP
