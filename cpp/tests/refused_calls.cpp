// SPDX-License-Identifier: Apache-2.0
//
// Calls that do not compile, one for each number, and the same without the mistake for 0. The tests
// look for the line that says what is missing.
#include <utility>

#include "fletching/cuda_array.hpp"
#include "fletching/dlpack.hpp"

namespace fletching::testing {

struct ThrowingMove {
  ThrowingMove() = default;
  ThrowingMove(ThrowingMove&& /*other*/) noexcept(FLETCHING_REFUSED != 1) {}
  ThrowingMove& operator=(ThrowingMove&&) = delete;
  ThrowingMove(const ThrowingMove&) = delete;
  ThrowingMove& operator=(const ThrowingMove&) = delete;
  ~ThrowingMove() = default;
};

Result<ImportedTensor> import_owner(const cuda_array_interface::Interface& says) {
  return from_cuda_array(says, ThrowingMove());
}

Result<DlpackTensor> export_array(const Schema& schema, DeviceArray& array,
                                  const ConsumerStream& stream) {
#if FLETCHING_REFUSED == 2
  return to_dlpack(schema, array);
#elif FLETCHING_REFUSED == 3
  return to_dlpack(*schema.get(), std::move(array), {.as_storage = true});
#elif FLETCHING_REFUSED == 4
  return to_dlpack(schema, array, stream);
#elif FLETCHING_REFUSED == 5
  return to_dlpack(*schema.get(), array, 1);
#endif
  Result<DlpackTensor> plain = to_dlpack(*schema.get(), array, {.as_storage = true});
  return plain ? to_dlpack(*schema.get(), array, stream, {.as_storage = true}) : std::move(plain);
}

}  // namespace fletching::testing
