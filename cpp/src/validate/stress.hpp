// SPDX-License-Identifier: Apache-2.0
//
// Helpers for the stress options: memory that neither side may still use.
#ifndef FLETCHING_SRC_VALIDATE_STRESS_HPP
#define FLETCHING_SRC_VALIDATE_STRESS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace fletching::validate {

inline constexpr unsigned char kPoison = 0xDB;  // no valid address, UTF-8 or count

/// A place that a struct moves through. Its bytes reveal later writes.
template <class Raw>
struct Place {
  Place() noexcept { leave(); }
  void leave() noexcept { std::memset(&raw, kPoison, sizeof raw); }
  [[nodiscard]] bool is_untouched() const noexcept {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&raw);
    return std::all_of(bytes, bytes + sizeof raw, [](unsigned char b) { return b == kPoison; });
  }

  Raw raw;
};

/// A struct that can move to another address.
template <class Raw>
class MovingStruct {
 public:
  Raw& get() noexcept { return places_[at_].raw; }
  /// Returns false if the place that the struct left earlier was written to.
  bool move() noexcept {
    Place<Raw>& other = places_[1 - at_];
    const bool is_untouched = other.is_untouched();
    other.raw = get();
    places_[at_].leave();
    at_ = 1 - at_;
    return is_untouched;
  }

 private:
  std::array<Place<Raw>, 2> places_;
  std::size_t at_ = 0;
};

/// Copies of strings lent to the consumer. Their memory is kept, so that a late read finds the
/// poison instead of crashing.
class Texts {
 public:
  /// Returns a copy for one call, which is freed 256 copies later. NULL if out of memory.
  const char* keep_or_null(const char* bytes, std::size_t size) noexcept {
    const char* const kept = add_or_null(texts_, bytes, size);
    const std::scoped_lock lock(mutex_);
    if (texts_.size() > kKept) texts_.erase(texts_.begin());
    return kept;
  }
  /// Returns a copy that lives as long as the stream. NULL if out of memory.
  const char* keep_to_the_end_or_null(const char* bytes, std::size_t size) noexcept {
    return add_or_null(lasting_, bytes, size);
  }

  /// Overwrites one copy, or all of them.
  void end(const char* text) noexcept {
    const std::scoped_lock lock(mutex_);
    for (std::vector<char>& kept : texts_) {
      if (kept.data() == text) poison(kept);
    }
  }
  void end_all() noexcept {
    const std::scoped_lock lock(mutex_);
    for (std::vector<char>& kept : texts_) poison(kept);
    for (std::vector<char>& kept : lasting_) poison(kept);
  }

 private:
  static constexpr std::size_t kKept = 256;

  const char* add_or_null(std::vector<std::vector<char>>& texts, const char* bytes,
                          std::size_t size) noexcept {
    try {
      const std::scoped_lock lock(mutex_);
      return texts.emplace_back(bytes, bytes + size).data();
    } catch (...) {
      return nullptr;
    }
  }

  /// Keeps the final NUL.
  static void poison(std::vector<char>& text) noexcept {
    if (!text.empty()) std::fill(text.begin(), text.end() - 1, static_cast<char>(kPoison));
  }

  std::mutex mutex_;
  std::vector<std::vector<char>> texts_;
  std::vector<std::vector<char>> lasting_;
};

/// Runs a function on another thread and waits for it. Runs it here if no thread can start.
template <class Run>
void run_elsewhere(const Run& run) noexcept {
  try {
    std::thread(run).join();
  } catch (...) {
    run();
  }
}

}  // namespace fletching::validate

#endif  // FLETCHING_SRC_VALIDATE_STRESS_HPP
