// SPDX-License-Identifier: Apache-2.0
// Fault injection, and the number of calls of each function.
#ifndef FLETCHING_STANDIN_FAULTS_HPP
#define FLETCHING_STANDIN_FAULTS_HPP

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fletching::standin {

// Strips version and variant suffixes, as in cuMemAlloc_v2, hipMemcpyAsync_spt and
// cuMemcpyHtoDAsync_v2_ptsz.
std::string_view plain_name(std::string_view symbol);

class Faults {
 public:
  // Counts the call and returns the error to inject, if any.
  std::optional<int> count(std::string_view function);

  // Parses the format of FletchingStandinSetFault. Returns false if the string is invalid.
  bool add(std::string_view text);
  void reset();

  std::int64_t calls(std::string_view function);
  std::map<std::string, std::int64_t, std::less<>> all_calls();

 private:
  struct Fault {
    std::string function;
    bool every;
    std::int64_t left;  // calls until it fires; 1 means the next one
    int error;
  };
  static std::optional<Fault> parse(std::string_view text);

  std::mutex mutex_;
  std::vector<Fault> faults_;
  std::map<std::string, std::int64_t, std::less<>> calls_;
};

}  // namespace fletching::standin

#endif  // FLETCHING_STANDIN_FAULTS_HPP
