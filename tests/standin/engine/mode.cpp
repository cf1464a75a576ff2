// SPDX-License-Identifier: Apache-2.0
#include "mode.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "face.hpp"

namespace fletching::standin {
namespace {

constexpr std::size_t kMostQueues = 128;

std::size_t queues_wanted() {
  const char* text = std::getenv(face::kQueues.variable);
  if (text == nullptr) return face::kQueues.without;
  std::size_t count = 0;
  const auto [rest, error] = std::from_chars(text, text + std::strlen(text), count);
  if (error != std::errc() || *rest != '\0' || count == 0 || count > kMostQueues) {
    refuse(face::kQueues.variable, text, "a number from 1 to 128");
  }
  return count;
}

}  // namespace

void refuse(const char* variable, std::string_view text, const char* wanted) {
  (void)std::fprintf(stderr, "Fletching stand-in (%s): %s is \"%.*s\"; it has to be %s\n",
                     face::kName, variable, static_cast<int>(text.size()), text.data(), wanted);
  std::abort();
}

bool as_driver() {
  static const bool is_driver = [] {
    const char* mode = std::getenv("FLETCHING_STANDIN_MODE");
    if (mode == nullptr || std::string_view(mode) == "strict") return false;
    if (std::string_view(mode) == "driver") return true;
    refuse("FLETCHING_STANDIN_MODE", mode, "strict or driver");
  }();
  return is_driver;
}

std::size_t hardware_queues() {
  static const std::size_t count = as_driver() ? queues_wanted() : 0;
  return count;
}

bool loads_lazily() {
  static const bool is_lazy = [] {
    if (!as_driver()) return false;
    const char* eager = face::kEager == nullptr ? nullptr : std::getenv(face::kEager);
    return eager == nullptr || std::string_view(eager) != "EAGER";
  }();
  return is_lazy;
}

}  // namespace fletching::standin
