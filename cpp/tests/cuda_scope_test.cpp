// SPDX-License-Identifier: Apache-2.0
//
// The contexts of a thread after an error of the driver. The driver here is a few functions: the
// stand-in pops even when it reports an error, and a driver may do either.
#include "fletching/detail/cuda_scope.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace fletching {
namespace {

std::vector<cuda::CUcontext> contexts;
bool pop_fails = false;
bool pops_nonetheless = false;

cuda::Functions driver() {
  cuda::Functions functions{};
  functions.cu_ctx_get_current = [](cuda::CUcontext* context) {
    *context = contexts.empty() ? nullptr : contexts.back();
    return cuda::kCudaSuccess;
  };
  functions.cu_ctx_push_current = [](cuda::CUcontext context) {
    contexts.push_back(context);
    return cuda::kCudaSuccess;
  };
  functions.cu_ctx_pop_current = [](cuda::CUcontext* context) {
    const bool fails = std::exchange(pop_fails, false);
    *context = contexts.back();
    if (!fails || pops_nonetheless) contexts.pop_back();
    return fails ? cuda::kCudaErrorLaunchFailed : cuda::kCudaSuccess;
  };
  functions.cu_get_error_name = [](cuda::CUresult, const char**) {
    return cuda::kCudaErrorInvalidHandle;
  };
  functions.cu_get_error_string = functions.cu_get_error_name;
  return functions;
}

TEST(CudaScope, PopsItsContextOnceWhenAnEarlierErrorIsReported) {
  int callers = 0;
  int ours = 0;
  const auto of = [](int& context) { return reinterpret_cast<cuda::CUcontext>(&context); };
  const cuda::Functions functions = driver();
  for (const bool nonetheless : {false, true}) {
    contexts = {of(callers)};
    pop_fails = true;
    pops_nonetheless = nonetheless;
    detail::CudaScope scope(functions);
    ASSERT_TRUE(scope.enter(of(ours)).ok());
    ASSERT_EQ(contexts.size(), 2U);
    EXPECT_FALSE(scope.leave().ok());
    EXPECT_EQ(contexts, std::vector<cuda::CUcontext>{of(callers)}) << nonetheless;
  }
}

}  // namespace
}  // namespace fletching
