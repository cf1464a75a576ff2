// SPDX-License-Identifier: Apache-2.0
//
// A libOpenCL.so.1 in front of the real ICD loader, with the functions of the generated table.
#include "runtimes/opencl.hpp"

#include <cstring>
#include <tuple>

#include "interpose.hpp"

namespace {

using namespace fletching::opencl;
using fletching::interpose::begins_with_any;
using fletching::interpose::Engine;

const Functions& real() {
  static const Functions functions = [] {
    Functions found{};
    void* library = fletching::interpose::real_library(FLETCHING_REAL_OPENCL);
    for (const fletching::VendorFunction& function : kRuntime.functions) {
      void* address = library != nullptr ? dlsym(library, function.symbol) : nullptr;
      std::memcpy(reinterpret_cast<char*>(&found) + function.offset, &address, sizeof address);
    }
    return found;
  }();
  return functions;
}

// The change in the number of live objects by a successful call.
int64_t change(std::string_view name) {
  if (begins_with_any(name, {"clCreate", "clRetain"})) return 1;
  return name.starts_with("clRelease") ? -1 : 0;
}

template <class... Arguments>
auto last(Arguments... arguments) {
  return std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...));
}

template <class Tag, class Signature>
struct Wrapper;

template <class Tag, class Return, class... Arguments>
struct Wrapper<Tag, Return (*)(Arguments...)> {
  static Return call(Arguments... arguments) noexcept {
    const std::optional<int> error = Engine::instance().count(Tag::kName);
    const auto function = real().*Tag::kMember;
    if constexpr (std::is_same_v<Return, cl_int>) {
      const bool gives_back = change(Tag::kName) < 0;
      if (error && !gives_back) return *error;
      const cl_int result = function(arguments...);
      if (result == kClSuccess) note(last(arguments...));
      return error ? *error : result;
    } else {
      cl_int* status = last(arguments...);
      if (error) {
        if (status != nullptr) *status = *error;
        return nullptr;
      }
      const Return made = function(arguments...);
      if (made != nullptr) Engine::instance().add_alive(Tag::kName, 1);
      return made;
    }
  }

 private:
  // A call that enqueues something returns an event in its last argument.
  static void note(cl_event* event) {
    if (event != nullptr) Engine::instance().add_alive(Tag::kName, 1);
  }
  template <class Other>
  static void note(Other) {
    if (change(Tag::kName) != 0) Engine::instance().add_alive(Tag::kName, change(Tag::kName));
  }
};

#define FLETCHING_INTERPOSE(name, member)               \
  struct Tag_##name {                                   \
    static constexpr const char* kName = #name;         \
    static constexpr auto kMember = &Functions::member; \
  };
#include "opencl_functions.inc"
#undef FLETCHING_INTERPOSE

int number_of(std::string_view name) {
  for (cl_int status = -1; status > -100; --status) {
    const char* known = status_name(status);
    if (known != nullptr && name == known) return status;
  }
  return 0;
}

bool can_fail(const std::string& function) {
  return std::ranges::any_of(kRuntime.functions,
                             [&](const auto& row) { return function == row.name; });
}

}  // namespace

#define FLETCHING_INTERPOSE(name, member) \
  FLETCHING_INTERPOSE_EXPORT(name, (&Wrapper<Tag_##name, decltype(Functions::member)>::call))
#include "opencl_functions.inc"
#undef FLETCHING_INTERPOSE

FLETCHING_INTERPOSE_CONTROL(number_of, can_fail)
