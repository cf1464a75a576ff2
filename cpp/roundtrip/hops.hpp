// The languages that data passes through inside this process: libfletching_transit_LANGUAGE.so.
#ifndef FLETCHING_TESTS_ROUNDTRIP_HOPS_HPP
#define FLETCHING_TESTS_ROUNDTRIP_HOPS_HPP

#include <cstdint>
#include <string>

#include "fletching/owner.hpp"

namespace fletching::roundtrip {

/// The functions of tests/roundtrip/transit.h of one language. The library stays loaded for ever:
/// runtimes of languages cannot be unloaded.
class Hop {
 public:
  /// Looks in the folder that FLETCHING_LIB_DIR names, else where the loader does. Throws Error
  /// (ENOENT, ENOSYS) with the loader's text.
  explicit Hop(std::string language);

  [[nodiscard]] const std::string& language() const { return language_; }

  /// Moves both in, and returns the result under the language's own release. Throws Error with
  /// what the language refused.
  void send(Schema& schema, DeviceArray& array) const;

  /// How many structs the language has exported, and how many of its releases have run.
  [[nodiscard]] std::int64_t exported() const { return exported_(); }
  [[nodiscard]] std::int64_t released() const { return released_(); }

 private:
  std::string language_;
  int (*array_)(ArrowSchema*, ArrowDeviceArray*, ArrowSchema*, ArrowDeviceArray*, char*,
                size_t) = nullptr;
  std::int64_t (*exported_)() = nullptr;
  std::int64_t (*released_)() = nullptr;
};

}  // namespace fletching::roundtrip

#endif  // FLETCHING_TESTS_ROUNDTRIP_HOPS_HPP
