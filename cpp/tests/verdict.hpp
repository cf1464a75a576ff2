// The result of one cell: the number of checks by the oracle, and each line in which it disagreed.
#ifndef FLETCHING_TESTS_VERDICT_HPP
#define FLETCHING_TESTS_VERDICT_HPP

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cells.hpp"

namespace fletching::testing {

class Verdict {
 public:
  /// Calls a check of the oracle, whose last arguments are a message and its capacity.
  template <typename Check, typename... Arguments>
  void ask(const Check& check, const Arguments&... arguments) {
    std::array<char, 512> message{};
    ++asserted_;
    if (check(arguments..., message.data(), message.size()) != 0) disagree(message.data());
  }

  /// Records a comparison made here, not by the oracle.
  void require(bool condition, const std::string& line) {
    ++asserted_;
    if (!condition) disagree(line);
  }

  void disagree(std::string line) { lines_.push_back(std::move(line)); }

  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

  /// Fails the running test with every line, and writes the cell of a struct.
  void finish(const std::string& struct_name, const std::string& direction) {
    require(asserted_ > 0, "nothing was compared");
    const std::string reason = lines_.empty() ? "" : lines_.front();
    if (!append_cell(struct_name, direction, asserted_, reason)) {
      disagree("FLETCHING_CELLS: cannot append to that file");
    }
    for (const std::string& line : lines_) ADD_FAILURE() << line;
  }

 private:
  std::int64_t asserted_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_VERDICT_HPP
