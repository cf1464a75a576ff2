// Finds a file of cases: the compiled-in path, or the file of that name in the folder that
// FLETCHING_CASES names.
#ifndef FLETCHING_TESTS_CORPUS_CASE_FILE_HPP
#define FLETCHING_TESTS_CORPUS_CASE_FILE_HPP

#include <cstdlib>
#include <filesystem>

namespace fletching {

inline std::filesystem::path case_file(const char* path) {
  const std::filesystem::path compiled(path);
  const char* const folder = std::getenv("FLETCHING_CASES");
  return folder == nullptr ? compiled : folder / compiled.filename();
}

}  // namespace fletching

#endif  // FLETCHING_TESTS_CORPUS_CASE_FILE_HPP
