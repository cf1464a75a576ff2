// What export.cpp and import.cpp share: four functions of C structs, and how a check fails.
#ifndef USER_PROJECT_HPP
#define USER_PROJECT_HPP

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "fletching/abi.h"
#include "fletching/result.hpp"

// import.cpp. Each takes what its arguments hold, and ends the program when a check fails.
extern "C" void import_batch(ArrowSchema* schema, ArrowDeviceArray* batch);
extern "C" void import_stream(ArrowDeviceArrayStream* stream);
extern "C" void import_misfit(ArrowDeviceArrayStream* stream);
extern "C" void import_async(ArrowDeviceArrayStream* stream);

// No exceptions: one of the variants is built without them.
[[noreturn]] inline void fail(const char* what, const char* why) {
  std::fprintf(stderr, "user_project: %s: %s\n", what, why);
  std::exit(1);
}

inline void expect(bool condition, const char* what) {
  if (!condition) fail("check failed", what);
}

template <class T>
T need(fletching::Result<T> result, const char* what) {
  if (!result.ok()) fail(what, result.error().message().c_str());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

#endif  // USER_PROJECT_HPP
