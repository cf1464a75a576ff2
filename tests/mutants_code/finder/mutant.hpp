// One mechanical change of a source, as two insertions.
#ifndef FLETCHING_MUTANTS_CODE_MUTANT_HPP
#define FLETCHING_MUTANTS_CODE_MUTANT_HPP

#include <string>

#include "source.hpp"

namespace fletching::mutate {

/// `open` goes before the range and `close` behind it, and the text between stays: so mutants nest,
/// and all of a file are in one build. "@NUMBER@" in `open` is the mutant's number.
struct Mutant {
  Range range;
  std::string kind;  ///< "relation"
  std::string function;
  std::string before;
  std::string after;
  std::string open;
  std::string close;
};

}  // namespace fletching::mutate

#endif  // FLETCHING_MUTANTS_CODE_MUTANT_HPP
