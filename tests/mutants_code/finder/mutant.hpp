// A mechanical change of a source as two insertions.
#ifndef FLETCHING_MUTANTS_CODE_MUTANT_HPP
#define FLETCHING_MUTANTS_CODE_MUTANT_HPP

#include <string>

#include "source.hpp"

namespace fletching::mutate {

/// `open` is inserted before the range and `close` after it. The text between is unchanged, so that
/// mutants can nest and one build has all mutants of a file. "@NUMBER@" in `open` becomes the
/// mutant's number.
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
