// A struct of the interface that is released by its owner's destructor.
#ifndef FLETCHING_TESTS_ROUNDTRIP_OWNED_HPP
#define FLETCHING_TESTS_ROUNDTRIP_OWNED_HPP

#include "fletching/abi.h"

namespace fletching::roundtrip {

/// The part of a struct that has the release callback.
inline ArrowArray& base_of(ArrowDeviceArray& array) { return array.array; }
template <typename Struct>
Struct& base_of(Struct& object) {
  return object;
}

template <typename Struct>
bool is_released(Struct& object) {
  return base_of(object).release == nullptr;
}

/// Calls release, unless it has been called or the struct was moved away.
template <typename Struct>
void release(Struct& object) noexcept {
  if (!is_released(object)) base_of(object).release(&base_of(object));
}

/// Bitwise copy, and the source is released no more.
template <typename Struct>
Struct moved_from(Struct& source) noexcept {
  const Struct copy = source;
  base_of(source).release = nullptr;
  return copy;
}

template <typename Struct>
class Owned {
 public:
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { release(value); }

  Struct value{};
};

}  // namespace fletching::roundtrip

#endif  // FLETCHING_TESTS_ROUNDTRIP_OWNED_HPP
