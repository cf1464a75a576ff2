// SPDX-License-Identifier: Apache-2.0
// Which call fails, and how often each function was called.
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

// cuMemAlloc_v2, hipMemcpyAsync_spt and cuMemcpyHtoDAsync_v2_ptsz without what follows the name.
std::string_view plain_name(std::string_view symbol);

class Faults {
 public:
  // Counts the call and returns the error that it has to fail with.
  std::optional<int> count(std::string_view function);

  // The form is that of FletchingStandinSetFault. False for a text that is wrong.
  bool add(std::string_view text);
  void reset();

  std::int64_t calls(std::string_view function);
  std::map<std::string, std::int64_t, std::less<>> all_calls();

 private:
  struct Fault {
    std::string function;
    bool every;
    std::int64_t left;  // calls until it fires; 1 is the next one
    int error;
  };
  static std::optional<Fault> parse(std::string_view text);

  std::mutex mutex_;
  std::vector<Fault> faults_;
  std::map<std::string, std::int64_t, std::less<>> calls_;
};

}  // namespace fletching::standin

#endif  // FLETCHING_STANDIN_FAULTS_HPP
