// SPDX-License-Identifier: Apache-2.0
//
// The assertions of the generated *_functions.cpp, which include the vendor's header first. Every
// assertion text begins with the name that it is about, which the tests search for.

#ifndef FLETCHING_TESTS_RUNTIMES_CHECK_HPP
#define FLETCHING_TESTS_RUNTIMES_CHECK_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

// Headers define some function names as macros for the exported symbols. The table's symbol is
// converted to a string before macro expansion, and the name after it.
#ifdef FLETCHING_PER_THREAD
#define FLETCHING_FUNCTION(name, symbol, per_thread, ...) \
  FLETCHING_SYMBOL(name, #per_thread, per_thread, __VA_ARGS__)
#else
#define FLETCHING_FUNCTION(name, symbol, per_thread, ...) \
  FLETCHING_SYMBOL(name, #symbol, symbol, __VA_ARGS__)
#endif
#define FLETCHING_TEXT(name) #name

// Of the two 64-bit integer types on this platform, vendors use one and the table the other.
template <typename Type>
struct Argument {
  using type = std::conditional_t<std::is_same_v<Type, unsigned long long*>, std::uint64_t*, Type>;
};
template <typename Function>
struct Signature;
template <typename Result, typename... Arguments>
struct Signature<Result (*)(Arguments...)> {
  using type = Result (*)(typename Argument<Arguments>::type...);
};

#define FLETCHING_SYMBOL(name, text, symbol, result, ...)                 \
  static_assert(std::string_view(FLETCHING_TEXT(name)) == text,           \
                text ": the header calls it otherwise");                  \
  static_assert(std::is_same_v<Signature<decltype(&symbol)>::type,        \
                               Signature<result (*)(__VA_ARGS__)>::type>, \
                text ": the header has another signature")

template <std::size_t>
struct AnyType {
  template <typename Type>
  operator Type() const;
};

template <typename Type, std::size_t... Index>
constexpr bool takes(std::index_sequence<Index...> /*fields*/) {
  return requires { Type{AnyType<Index>()...}; };
}

#define FLETCHING_HANDLE(type) \
  static_assert(std::is_pointer_v<type>, #type ": no pointer in the header")

#define FLETCHING_HANDLE64(type)                                                          \
  static_assert(sizeof(type) == 8, #type ": not of 64 bits in the header");               \
  static_assert(                                                                          \
      sizeof(void*) == 8 ? std::is_pointer_v<type> : std::is_same_v<type, std::uint64_t>, \
      #type ": neither a pointer nor a 64-bit integer in the header")

#define FLETCHING_INTEGER(type, as)                                                         \
  static_assert(std::is_integral_v<type> && std::is_signed_v<type> == std::is_signed_v<as>, \
                #type ": no such integer in the header");                                   \
  static_assert(sizeof(type) == sizeof(as), #type ": of another width in the header")

#define FLETCHING_ENUM(type, as)                                        \
  static_assert(std::is_enum_v<type>, #type ": no enum in the header"); \
  static_assert(sizeof(type) == sizeof(as), #type ": of another width in the header")

#define FLETCHING_STRUCT(type) \
  static_assert(std::is_class_v<type>, #type ": no struct in the header")

// The table's copy of a struct is `table::type`. Because of padding, the size does not give the
// number of fields; the number of elements that a braced list accepts does.
#define FLETCHING_FIELDS(type, count)                                                         \
  static_assert(sizeof(type) == sizeof(table::type), #type ": size differs from the header"); \
  static_assert(takes<type>(std::make_index_sequence<count>()) &&                             \
                    !takes<type>(std::make_index_sequence<count + 1>()),                      \
                #type ": more or fewer fields in the header")

#define FLETCHING_FIELD(type, field)                                                 \
  static_assert(std::is_same_v<decltype(type::field), decltype(table::type::field)>, \
                #type "." #field ": of another type in the header");                 \
  static_assert(offsetof(type, field) == offsetof(table::type, field),               \
                #type "." #field ": at another place in the header")

#endif  // FLETCHING_TESTS_RUNTIMES_CHECK_HPP
