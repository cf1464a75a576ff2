// SPDX-License-Identifier: Apache-2.0
//
// A wrapper around a real vendor library. It forwards each call, counts it, makes it fail on
// demand, and counts the objects that were created and not destroyed.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fletching::interpose {

inline bool begins_with_any(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return name.starts_with(part); });
}

// Call counts and faults by function, one instance per library.
class Engine {
 public:
  static Engine& instance() {
    static auto& engine = *new Engine;  // never destroyed: called until the process has ended
    return engine;
  }

  // The error to return from this call, if any.
  std::optional<int> count(const char* function) {
    const std::scoped_lock lock(mutex_);
    ++calls_[function];
    std::optional<int> error;
    for (Fault& fault : faults_) {
      if (fault.function != function) continue;
      if (fault.every || --fault.left == 0) error = fault.error;
    }
    return error;
  }

  void add_alive(const char* function, int64_t change) {
    const std::scoped_lock lock(mutex_);
    alive_ += change;
    changes_[function] += change;
  }

  bool add_fault(std::string function, bool every, int64_t left, int error) {
    if ((!every && left <= 0) || error == 0) return false;
    const std::scoped_lock lock(mutex_);
    faults_.push_back({std::move(function), every, left, error});
    return true;
  }

  void reset() {
    const std::scoped_lock lock(mutex_);
    faults_.clear();
  }

  int64_t calls(const char* function) {
    const std::scoped_lock lock(mutex_);
    return calls_[function];
  }

  int64_t alive() {
    const std::scoped_lock lock(mutex_);
    return alive_;
  }

  std::string report() {
    const std::scoped_lock lock(mutex_);
    std::string text;
    for (const auto& [function, change] : changes_) {
      if (change == 0) continue;
      text += function + " " + std::to_string(change) + "; ";
    }
    return text;
  }

 private:
  struct Fault {
    std::string function;
    bool every;
    int64_t left;
    int error;
  };

  std::mutex mutex_;
  std::map<std::string, int64_t> calls_;
  std::map<std::string, int64_t> changes_;
  std::vector<Fault> faults_;
  int64_t alive_ = 0;
};

// Opens the real library at the path that CMake found.
inline void* real_library(const char* path) {
  void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) std::fprintf(stderr, "interposer: %s\n", dlerror());
  return library;
}

// The function behind an exported vendor name; the loader calls a resolver for it.
using AnyCall = void (*)();
#define FLETCHING_INTERPOSE_EXPORT(name, target)                                                  \
  extern "C" __attribute__((visibility("hidden"),                                                 \
                            no_sanitize("all"))) fletching::interpose::AnyCall resolve_##name() { \
    return reinterpret_cast<fletching::interpose::AnyCall>(target);                               \
  }                                                                                               \
  extern "C" __attribute__((visibility("default"), ifunc("resolve_" #name))) void name();

// Sets a fault from "function:n:error"; `*` for n is every call. `number_of` returns the number of
// an error's name, or 0.
template <class NumberOf, class CanFail>
int set_fault(const char* text, NumberOf number_of, CanFail can_fail) {
  const std::string_view all = text;
  const std::size_t first = all.find(':');
  const std::size_t second = all.find(':', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return EINVAL;
  const std::string function(all.substr(0, first));
  const std::string when(all.substr(first + 1, second - first - 1));
  if (!can_fail(function)) return EINVAL;
  const int error = number_of(all.substr(second + 1));
  const int64_t left = std::atoll(when.c_str());
  return Engine::instance().add_fault(function, when == "*", left, error) ? 0 : EINVAL;
}

}  // namespace fletching::interpose

#define FLETCHING_INTERPOSE_CONTROL(number_of, can_fail)                                         \
  extern "C" __attribute__((visibility("default"))) int FletchingInterposerSetFault(             \
      const char* text) {                                                                        \
    return fletching::interpose::set_fault(text, number_of, can_fail);                           \
  }                                                                                              \
  extern "C" __attribute__((visibility("default"))) void FletchingInterposerResetFaults() {      \
    fletching::interpose::Engine::instance().reset();                                            \
  }                                                                                              \
  extern "C" __attribute__((visibility("default"))) int64_t FletchingInterposerCalls(            \
      const char* function) {                                                                    \
    return fletching::interpose::Engine::instance().calls(function);                             \
  }                                                                                              \
  extern "C" __attribute__((visibility("default"))) int64_t FletchingInterposerLeaks(void*) {    \
    return fletching::interpose::Engine::instance().alive();                                     \
  }                                                                                              \
  extern "C" __attribute__((visibility("default"))) size_t FletchingInterposerReport(char* text, \
                                                                                     size_t n) { \
    const std::string all = fletching::interpose::Engine::instance().report();                   \
    if (n > 0) std::snprintf(text, n, "%s", all.c_str());                                        \
    return all.size();                                                                           \
  }
