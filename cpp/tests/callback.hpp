// A callback of a struct, from its member pointer: a function of the exact type that reports to the
// oracle, and a call through the field with the oracle's arguments.
#ifndef FLETCHING_TESTS_CALLBACK_HPP
#define FLETCHING_TESTS_CALLBACK_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "abi_fields.hpp"
#include "bits.hpp"
#include "oracle.h"

namespace fletching::testing {

/// Index in `Arguments` of the pointer to the struct itself; 0 if there is none.
template <typename Struct, typename... Arguments>
constexpr std::size_t self_place() {
  constexpr std::array<bool, sizeof...(Arguments)> kIsSelf{std::is_same_v<Arguments, Struct*>...};
  const auto* found = std::find(kIsSelf.begin(), kIsSelf.end(), true);
  return found == kIsSelf.end() ? 0 : static_cast<std::size_t>(found - kIsSelf.begin());
}

/// The width of an argument or result in the oracle's spelling.
template <typename Value>
std::string width() {
  if constexpr (std::is_void_v<Value>) {
    return "v";
  } else {
    return std::is_pointer_v<Value> ? "p" : std::to_string(sizeof(Value));
  }
}

template <auto Member>
struct Callback;

template <typename Struct, typename Result, typename... Arguments,
          Result (*Struct::*Member)(Arguments...)>
struct Callback<Member> {
  /// Must be set before the oracle calls.
  static inline const char* name = nullptr;

  /// The widths of the arguments and the result in the oracle's spelling.
  static std::string signature() {
    std::string text;
    ((text += (text.empty() ? "" : ",") + width<Arguments>()), ...);
    return text + "->" + width<Result>();
  }

  /// The binding's function for the field.
  static Result enter(Arguments... arguments) noexcept {
    report(std::index_sequence_for<Arguments...>(), arguments...);
    if constexpr (!std::is_void_v<Result>) {
      return from_bits<Result>(FletchingOracleExpectedResult());
    }
  }

  /// Calls the field's function. Returns the bits of the result, 0 for void.
  static std::uint64_t call(Struct& object) {
    return call(object, std::index_sequence_for<Arguments...>());
  }

 private:
  /// The oracle's number of the argument at this index: self is 0, the others follow in order. This
  /// detects arguments in the wrong order even if both are pointers.
  static constexpr int number_of(std::size_t place) {
    constexpr std::size_t kSelf = self_place<Struct, Arguments...>();
    if (place == kSelf) return 0;
    return static_cast<int>(place < kSelf ? place + 1 : place);
  }

  template <std::size_t... Places>
  static void report(std::index_sequence<Places...>, const Arguments&... arguments) noexcept {
    (FletchingOracleSawArgument(Fields<Struct>::kName, name, number_of(Places), to_bits(arguments)),
     ...);
  }

  template <std::size_t... Places>
  static std::uint64_t call(Struct& object, std::index_sequence<Places...>) {
    const auto function = object.*Member;
    if constexpr (std::is_void_v<Result>) {
      function(from_bits<Arguments>(FletchingOracleArgument(number_of(Places)))...);
      return 0;
    } else {
      return to_bits(function(from_bits<Arguments>(FletchingOracleArgument(number_of(Places)))...));
    }
  }
};

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_CALLBACK_HPP
