// What a mutant of C++ asks: whether it is the one that is tried. The compiler includes it before
// everything else (-include).
//
// FLETCHING_MUTANT is the number of the one that is tried. FLETCHING_MUTANTS_SEEN names a file that
// gets the number of each mutant that is asked for. No memory is allocated: tests let it run out.
#ifndef FLETCHING_MUTANT_HPP
#define FLETCHING_MUTANT_HPP

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>

struct FletchingMutants {
  static constexpr int kMost = 16384;

  FletchingMutants() noexcept {
    if (const char* number = std::getenv("FLETCHING_MUTANT")) chosen = std::atoi(number);
    if (const char* path = std::getenv("FLETCHING_MUTANTS_SEEN")) {
      file = ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    }
  }

  void see(int number) noexcept {
    if (number >= kMost || seen[number].exchange(true)) return;
    char digits[12];
    std::size_t first = sizeof digits;
    digits[--first] = '\n';
    for (int rest = number; rest > 0 || first + 1 == sizeof digits; rest /= 10) {
      digits[--first] = static_cast<char>('0' + rest % 10);
    }
    (void)!::write(file, digits + first, sizeof digits - first);  // in one piece, by O_APPEND
  }

  int chosen = -1;
  int file = -1;
  std::atomic<bool> seen[kMost] = {};
};

inline bool fletching_mutant_at_run_time(int number) noexcept {
  static FletchingMutants mutants;
  if (mutants.file >= 0) mutants.see(number);
  return number == mutants.chosen;
}

/// A constant expression is never mutated. C++14: CMake tries the compiler with this header, too.
constexpr bool fletching_mutant(int number) noexcept {
  return !__builtin_is_constant_evaluated() && fletching_mutant_at_run_time(number);
}

#endif  // FLETCHING_MUTANT_HPP
