// SPDX-License-Identifier: Apache-2.0
//
// The loader of vendor libraries, tested on fake libraries, and the tables.
#include "runtimes/loader.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtimes/cuda.hpp"
#include "runtimes/hip.hpp"
#include "runtimes/opencl.hpp"
#include "runtimes/vulkan.hpp"

namespace fletching {
namespace {

// libfirst and libsecond are two versions of one library that return different numbers.
constexpr std::array<const char*, 2> kVersions{FLETCHING_TEST_FIRST, FLETCHING_TEST_SECOND};
constexpr std::array<const char*, 1> kSecond{FLETCHING_TEST_SECOND};
constexpr std::array<const char*, 2> kAbsent{"libfletching-none.so.1", "libfletching-none.so"};

struct Functions {
  CFunction<int()> number;
  CFunction<int()> other;
};

constexpr VendorFunction kNumber{"number", "fletching_test_number", nullptr, nullptr,
                                 offsetof(Functions, number)};

// A function that the library lacks.
constexpr VendorFunction missing(const char* optional) {
  return {"other", "fletching_test_new", nullptr, optional, offsetof(Functions, other)};
}

// Each instance has a separate copy of the loaded runtime.
template <int kInstance>
struct Instance : Functions {};

bool contains(const Error& error, std::string_view part) {
  return error.message().find(part) != std::string::npos;
}

TEST(Loader, ErrorNamesEachTriedLibrary) {
  const VendorRuntime runtime{"none", "None API", kAbsent, {}};
  const auto found = find_library(runtime);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), ENOENT);
  for (const char* name : kAbsent) EXPECT_TRUE(contains(found.error(), name));
  EXPECT_TRUE(contains(found.error(), "None API")) << found.error().message();
  EXPECT_TRUE(contains(found.error(), "No such file")) << found.error().message();
}

TEST(Loader, ReportsSystemWithoutLibrary) {
  const auto found = find_library({"none", "None API", {}, {}});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message(), "None API: no library for this system");
}

TEST(Loader, PrefersLoadedVersion) {
  const auto alone = find_library({"two", "Two API", kSecond, {}});
  ASSERT_TRUE(alone.ok()) << alone.error().message();
  // libfirst.so is first in the list, but libsecond.so is already loaded.
  const auto found = find_library({"two", "Two API", kVersions, {}});
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_STREQ(found->name, FLETCHING_TEST_SECOND);
  EXPECT_EQ(found->handle, alone->handle);
}

TEST(Loader, FillsFunctions) {
  static constexpr std::array kRows{kNumber, missing("3.0")};
  const VendorRuntime runtime{"two", "Two API", kSecond, kRows};
  const auto found = loaded_functions<Instance<0>>(runtime);
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ((*found)->number(), 2);
  EXPECT_EQ((*found)->other, nullptr) << "it is optional";
}

TEST(Loader, ErrorNamesMissingSymbol) {
  static constexpr std::array kRows{kNumber, missing(nullptr)};
  const VendorRuntime runtime{"two", "Two API", kSecond, kRows};
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto found = loaded_functions<Instance<1>>(runtime);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code(), ENOSYS);
    EXPECT_TRUE(contains(found.error(), "fletching_test_new")) << found.error().message();
    EXPECT_TRUE(contains(found.error(), FLETCHING_TEST_SECOND)) << found.error().message();
  }
}

TEST(Loader, LoadsOnceAcrossThreads) {
  static constexpr std::array kRows{kNumber};
  const VendorRuntime runtime{"two", "Two API", kSecond, kRows};
  std::vector<const Instance<2>*> found(8);
  std::vector<std::thread> threads;
  threads.reserve(found.size());
  for (auto& slot : found) {
    threads.emplace_back([&slot, &runtime] {
      auto loaded = loaded_functions<Instance<2>>(runtime);
      if (loaded.ok() && (*loaded)->number() == 2) slot = *loaded;
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_NE(found[0], nullptr);
  for (const auto* each : found) EXPECT_EQ(each, found[0]);
}

template <class Functions>
void check_rows(const VendorRuntime& runtime) {
  std::set<std::string_view> symbols;
  std::size_t offset = 0;
  for (const VendorFunction& function : runtime.functions) {
    EXPECT_TRUE(symbols.insert(function.symbol).second) << function.symbol;
    EXPECT_EQ(function.offset, offset) << function.name;
    offset += sizeof(AnyFunction);
  }
  EXPECT_EQ(offset, sizeof(Functions)) << "a row for each function, and the other way round";
}

TEST(Tables, HaveRowForEachFunction) {
  check_rows<cuda::Functions>(cuda::kRuntime);
  check_rows<hip::Functions>(hip::kRuntime);
  check_rows<opencl::Functions>(opencl::kRuntime);
  check_rows<vulkan::Functions>(vulkan::kRuntime);
}

TEST(Tables, MapResultsToEventStates) {
  EXPECT_EQ(cuda::event_state(0), EventState::kDone);
  EXPECT_EQ(cuda::event_state(600), EventState::kPending);
  EXPECT_EQ(cuda::event_state(719), EventState::kFailed);
  EXPECT_EQ(hip::event_state(600), EventState::kPending);
  EXPECT_EQ(opencl::event_state(0), EventState::kDone);
  EXPECT_EQ(opencl::event_state(3), EventState::kPending);
  EXPECT_EQ(opencl::event_state(17), EventState::kPending) << "a state between, of an extension";
  EXPECT_EQ(opencl::event_state(-5), EventState::kFailed);
  EXPECT_EQ(vulkan::event_state(3), EventState::kDone);
  EXPECT_EQ(vulkan::event_state(4), EventState::kPending);
  EXPECT_EQ(vulkan::event_state(0), EventState::kFailed) << "VK_SUCCESS is not a state";
}

TEST(Tables, NameResults) {
  EXPECT_STREQ(opencl::status_name(-58), "CL_INVALID_EVENT");
  EXPECT_EQ(opencl::status_name(-9999), nullptr);
}

TEST(Tables, InstalledLibrariesHaveEveryFunction) {
  for (const auto* runtime : {&opencl::kRuntime, &vulkan::kRuntime}) {
    const auto library = find_library(*runtime);
    if (!library.ok()) GTEST_SKIP() << library.error().message();
    for (const VendorFunction& function : runtime->functions) {
      EXPECT_NE(find_symbol(library->handle, function.symbol), nullptr) << function.symbol;
    }
  }
}

}  // namespace
}  // namespace fletching
