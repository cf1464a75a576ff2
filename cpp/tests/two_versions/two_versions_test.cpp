// SPDX-License-Identifier: Apache-2.0
//
// Two libraries in one process, built with the same or with two versions of the headers, or one
// with FLETCHING_VALIDATE_OWNERS. Two versions are loaded with RTLD_GLOBAL: the dynamic linker
// merges symbols with the same name.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

namespace {

class Library {
 public:
  explicit Library(const char* path) : handle_(dlopen(path, RTLD_NOW | FLETCHING_TEST_SCOPE)) {
    if (handle_ == nullptr) ADD_FAILURE() << dlerror();
  }

  template <class Function>
  auto call(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name))();
  }

 private:
  void* handle_;  // the libraries stay loaded, like plugins
};

TEST(TwoVersions, ReadSeparateErrors) {
  const std::array libraries{Library(FLETCHING_TEST_FIRST), Library(FLETCHING_TEST_SECOND)};
  EXPECT_EQ(libraries[0].call<std::int32_t()>("fletching_test_code"), FLETCHING_TEST_FIRST_CODE);
  EXPECT_EQ(libraries[1].call<std::int32_t()>("fletching_test_code"), FLETCHING_TEST_SECOND_CODE);
}

TEST(TwoVersions, HaveSeparateWaiters) {
  const std::array libraries{Library(FLETCHING_TEST_FIRST), Library(FLETCHING_TEST_SECOND)};
  for (const Library& library : libraries) {
    EXPECT_EQ(library.call<int()>("fletching_test_register"), 0);
  }
  EXPECT_EQ(libraries[0].call<int()>("fletching_test_register"), 1);
}

TEST(TwoVersions, ValidateSeparately) {
  const std::array libraries{Library(FLETCHING_TEST_FIRST), Library(FLETCHING_TEST_SECOND)};
  EXPECT_FALSE(libraries[0].call<bool()>("fletching_test_validates"));
  EXPECT_EQ(libraries[1].call<bool()>("fletching_test_validates"), FLETCHING_TEST_SECOND_VALIDATES);
}

}  // namespace
