// Shared by export.cpp and import.cpp: C functions that pass structs, and error handling.
#ifndef USER_PROJECT_HPP
#define USER_PROJECT_HPP

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "fletching/abi.h"
#include "fletching/result.hpp"

// Defined in import.cpp. Each takes ownership of its structs, and ends the program on a failed
// check.
extern "C" void import_batch(ArrowSchema* schema, ArrowDeviceArray* batch);
extern "C" void import_stream(ArrowDeviceArrayStream* stream);
extern "C" void import_misfit(ArrowDeviceArrayStream* stream);
extern "C" void import_async(ArrowDeviceArrayStream* stream);

// Does not throw, because one variant is built without exceptions.
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
