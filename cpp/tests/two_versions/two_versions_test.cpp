// SPDX-License-Identifier: Apache-2.0
//
// Two libraries of one process that were built with two versions of the headers, or with one. GCC
// gives variables of inline functions a binding that the dynamic linker merges even under
// RTLD_LOCAL; in the newer version the table of CUDA's functions has one more member.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

namespace {

class Library {
 public:
  explicit Library(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) ADD_FAILURE() << dlerror();
  }

  template <class Function>
  auto call(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name))();
  }

  [[nodiscard]] std::int32_t driver_version() const {
    return call<std::int32_t()>("fletching_test_driver_version");
  }

 private:
  void* handle_;  // the libraries stay loaded, as a plugin does
};

// The table of the first library to be used is the one that all would use after a merge.
TEST(TwoVersions, EachCallsThroughItsOwnTable) {
  const std::array libraries{Library(FLETCHING_TEST_FIRST), Library(FLETCHING_TEST_SECOND)};
  for (const Library& library : libraries) EXPECT_GT(library.driver_version(), 0);
}

TEST(TwoVersions, EachHasItsOwnWaiters) {
  const std::array libraries{Library(FLETCHING_TEST_FIRST), Library(FLETCHING_TEST_SECOND)};
  for (const Library& library : libraries) {
    EXPECT_EQ(library.call<int()>("fletching_test_register"), 0);
  }
  EXPECT_EQ(libraries[0].call<int()>("fletching_test_register"), 1);
}

}  // namespace
