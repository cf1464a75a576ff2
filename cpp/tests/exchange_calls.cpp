// SPDX-License-Identifier: Apache-2.0
//
// Calls to DLPack and from the CUDA Array Interface that do not compile: check_errors.cmake
// compares the compiler's errors, one line per call, with the comments here.
#include <memory>
#include <utility>

#include "fletching/cuda_array.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/dlpack_stream.hpp"

using namespace fletching;

struct ThrowingMove {
  ThrowingMove() = default;
  ThrowingMove(ThrowingMove&& /*other*/) noexcept(false) {}
};

void import_owner(const cuda_array_interface::Interface& says) {
  (void)from_cuda_array(says, std::make_unique<ThrowingMove>());
  // error: from_cuda_array: owner: expected a type whose move is noexcept
  (void)from_cuda_array(says, ThrowingMove());
}

void export_array(const Schema& schema, DeviceArray& array, const ConsumerStream& stream) {
  (void)to_dlpack(*schema, array, {.as_storage = true});
  (void)to_dlpack(*schema, array, stream, {.as_storage = true});
  // error: to_dlpack: array: expected a DeviceArray that is a variable
  (void)to_dlpack(*schema, std::move(array), {.as_storage = true});
  // error: to_dlpack: stream: expected a ConsumerStream
  (void)to_dlpack(*schema, array, 1);
}

void export_owner(const Schema& schema, DeviceArray& array) {
  // error: to_dlpack: schema: expected const ArrowSchema&
  (void)to_dlpack(schema, array);
}

void export_owner_on_stream(Schema& schema, DeviceArray& array, const ConsumerStream& stream) {
  // error: to_dlpack: schema: expected const ArrowSchema&
  (void)to_dlpack(schema, array, stream);
}
