// Memory for one struct under test.
#ifndef FLETCHING_TESTS_OBJECT_HPP
#define FLETCHING_TESTS_OBJECT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace fletching::testing {

/// A zeroed struct in memory large enough for both sides' layouts and for writes past its end by a
/// call through a wrong declaration.
template <typename Struct>
class Object {
 public:
  explicit Object(std::int64_t oracle_size)
      : memory_((std::max(sizeof(Struct),
                          static_cast<std::size_t>(std::max<std::int64_t>(oracle_size, 0))) +
                 kSlack) /
                sizeof(std::max_align_t)),
        object_(new(memory_.data()) Struct{}) {}

  Struct& operator*() { return *object_; }

 private:
  static constexpr std::size_t kSlack = 1024;

  std::vector<std::max_align_t> memory_;
  Struct* object_;
};

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_OBJECT_HPP
