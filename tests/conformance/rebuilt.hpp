// SPDX-License-Identifier: Apache-2.0
//
// Compares the arrays of a library that rebuilds them (FLETCHING_SUBJECT_REBUILDS).
#ifndef FLETCHING_TESTS_CONFORMANCE_REBUILT_HPP
#define FLETCHING_TESTS_CONFORMANCE_REBUILT_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fletching/abi.h"
#include "fletching/conformance.h"

namespace fletching::conformance {

inline bool rebuilds(const FletchingSubject& subject) noexcept {
  return (subject.promises & FLETCHING_SUBJECT_REBUILDS) != 0;
}

/// A struct and everything below it, in the suite's memory, without an owner.
template <class Raw>
struct Tree {
  Raw raw{};
  std::vector<std::unique_ptr<Tree>> children;
  std::vector<Raw*> pointers;
  std::unique_ptr<Tree> dictionary;
  std::string format;                // schemas only
  std::string metadata;              // schemas only; encoded
  std::vector<const void*> buffers;  // arrays only
  bool has_bitmap = false;           // the first buffer is a validity bitmap
  bool has_nulls = false;            // that bitmap has nulls
  bool is_view = false;              // the last buffer has the sizes of the variadic buffers
  std::vector<std::int64_t> sizes;
};

/// A valid schema and array before the subject gets them. If the subject rebuilds arrays, `schema`
/// and `array` return the result with the original's form of members that may differ: the format of
/// a decimal, the order of metadata, the flags of a dictionary's own schema, the null count, a NULL
/// buffer, buffers without rows, a bitmap without nulls, the sizes of variadic buffers.
class Original {
 public:
  Original(const FletchingSubject& subject, const ArrowSchema& schema);
  Original(const FletchingSubject& subject, const ArrowSchema& schema, const ArrowArray& array);

  /// The return values are valid while the result and this object are.
  ArrowSchema schema(const ArrowSchema& result);
  ArrowDeviceArray array(const ArrowDeviceArray& result);

 private:
  std::unique_ptr<Tree<ArrowSchema>> schema_, schema_result_;
  std::unique_ptr<Tree<ArrowArray>> array_, array_result_;
};

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_REBUILT_HPP
