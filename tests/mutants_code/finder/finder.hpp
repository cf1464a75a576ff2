// Visits the functions of a translation unit, and templates as written.
#ifndef FLETCHING_MUTANTS_CODE_FINDER_HPP
#define FLETCHING_MUTANTS_CODE_FINDER_HPP

#include <string>
#include <vector>

#include "clang/AST/ASTContext.h"
#include "mutant.hpp"

namespace fletching::mutate {

/// The mutants of every file in `folder` that the translation unit includes.
std::vector<Mutant> find_mutants(clang::ASTContext& context, const std::string& folder);

}  // namespace fletching::mutate

#endif  // FLETCHING_MUTANTS_CODE_FINDER_HPP
