// Values in the oracle's representation: the bits of a field, argument or result in its native
// width, zero-extended to 64.
#ifndef FLETCHING_TESTS_BITS_HPP
#define FLETCHING_TESTS_BITS_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace fletching::testing {

template <typename Value>
std::uint64_t to_bits(const Value& value) {
  if constexpr (std::is_pointer_v<Value>) {
    return reinterpret_cast<std::uintptr_t>(value);
  } else if constexpr (std::is_enum_v<Value>) {
    return to_bits(static_cast<std::underlying_type_t<Value>>(value));
  } else if constexpr (std::is_integral_v<Value>) {
    return static_cast<std::make_unsigned_t<Value>>(value);
  } else {  // a struct, passed by value only with a wrong spec: its first bytes
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, std::min(sizeof(bits), sizeof(value)));
    return bits;
  }
}

template <typename Value>
Value from_bits(std::uint64_t bits) {
  if constexpr (std::is_pointer_v<Value>) {
    return reinterpret_cast<Value>(static_cast<std::uintptr_t>(bits));
  } else if constexpr (std::is_integral_v<Value> || std::is_enum_v<Value>) {
    return static_cast<Value>(bits);
  } else {
    Value value{};
    std::memcpy(&value, &bits, std::min(sizeof(bits), sizeof(value)));
    return value;
  }
}

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_BITS_HPP
