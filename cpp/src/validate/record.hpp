// SPDX-License-Identifier: Apache-2.0
//
// The records of wrapped objects, and the log through which they report findings.
#ifndef FLETCHING_SRC_VALIDATE_RECORD_HPP
#define FLETCHING_SRC_VALIDATE_RECORD_HPP

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fletching/validate.h"
#include "rules.hpp"

namespace fletching::validate {

inline constexpr std::size_t kKeptRecords = 4096;
inline constexpr std::size_t kKeptCalls = 16;

/// The last calls on a stream and on its batches, and where findings go.
class Log {
 public:
  explicit Log(const FletchingValidateOptions& options) noexcept : options_(options) {}

  [[nodiscard]] std::int32_t level() const noexcept { return options_.level; }

  void note(const char* call, std::int64_t index, int code) noexcept {
    const std::scoped_lock lock(mutex_);
    calls_[noted_++ % kKeptCalls] = {call, index, code};
  }

  /// Without memory for the texts, the rule is reported with empty ones.
  void report(const RuleFacts& rule, const char* party, const char* path,
              const char* message) noexcept {
    std::string lines;
    try {
      lines = history();
    } catch (...) {
      lines.clear();
    }
    send({rule.id, rule.severity, party == nullptr ? rule.party : party, path, message,
          lines.c_str()});
  }

 private:
  struct Call {
    const char* name;
    std::int64_t index;
    int code;
  };

  std::string history() {
    const std::scoped_lock lock(mutex_);
    std::string lines;
    for (std::size_t at = noted_ - (std::min)(noted_, kKeptCalls); at < noted_; ++at) {
      const Call& call = calls_[at % kKeptCalls];
      lines.append(lines.empty() ? "" : "\n").append(call.name).append("[");
      lines.append(std::to_string(call.index)).append("] returned ");
      lines.append(std::to_string(call.code));
    }
    return lines;
  }

  void send(const FletchingFinding& finding) const noexcept {
    if (options_.report != nullptr) return options_.report(options_.context, &finding);
    std::fprintf(stderr, "fletching: %s: %s (%s, rule %s, %s)\n", finding.path, finding.message,
                 finding.severity, finding.rule, finding.party);
  }

  FletchingValidateOptions options_;
  std::mutex mutex_;
  std::array<Call, kKeptCalls> calls_{};
  std::size_t noted_ = 0;
};

/// Builds the texts of a finding. Without memory the finding has no texts.
template <class Make>
std::string text_or_empty(const Make& make) noexcept {
  try {
    return make();
  } catch (...) {
    return {};
  }
}

/// The path of a finding: "get_next[2].array".
struct Path {
  [[nodiscard]] std::string text() const {
    std::string text(call);
    if (index >= 0) text.append("[").append(std::to_string(index)).append("]");
    return text.append(member);
  }

  const char* call = "";
  std::int64_t index = -1;  // none
  const char* member = "";
};

/// A wrapped object. private_data of its struct points to it.
struct Record {
  Record() = default;
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;
  virtual ~Record() = default;

  void report(Rule rule, const Path& at, const char* message,
              const char* party = nullptr) noexcept {
    log->report(facts(rule), party, text_or_empty([&] { return at.text(); }).c_str(), message);
  }

  std::shared_ptr<Log> log;
  Path path;
  std::atomic<const Rule*> live_rule = nullptr;  // of an object that is never released
  std::atomic<const void*> self = nullptr;       // where the struct was last seen
  std::atomic<bool> released = false;
};

/// The live records and the newest released ones. Never destroyed: a program may release a batch
/// while it exits.
class Records {
 public:
  static Records& get() {
    static auto* const records = new Records;
    return *records;
  }

  /// May throw.
  void add(const std::shared_ptr<Record>& record) {
    const std::scoped_lock lock(mutex_);
    known_.emplace(record.get(), record);
  }

  void remove(const Record& record) noexcept {
    const std::scoped_lock lock(mutex_);
    known_.erase(&record);
  }

  /// Returns the record at an address, or NULL if no record of this type is there.
  template <class Kind>
  std::shared_ptr<Kind> find(const void* address) noexcept {
    const std::scoped_lock lock(mutex_);
    const auto found = known_.find(address);
    return found == known_.end() ? nullptr : std::dynamic_pointer_cast<Kind>(found->second);
  }

  /// The live record whose struct was last seen at an address.
  template <class Kind>
  std::shared_ptr<Kind> find_struct(const void* self) noexcept {
    const std::scoped_lock lock(mutex_);
    for (const auto& [address, record] : known_) {
      if (record->self != self || record->released) continue;
      if (auto kind = std::dynamic_pointer_cast<Kind>(record)) return kind;
    }
    return nullptr;
  }

  /// Keeps a released record, and drops the oldest if there are too many. Without memory for the
  /// place in the order, the record is kept for good.
  void retire(const Record& record) noexcept {
    std::shared_ptr<Record> dropped;  // destroyed without the lock
    const std::scoped_lock lock(mutex_);
    try {
      released_.push_back(&record);
    } catch (...) {
      return;
    }
    if (released_.size() <= kKeptRecords) return;
    const auto oldest = known_.find(released_.front());
    if (oldest != known_.end()) {
      dropped = std::move(oldest->second);
      known_.erase(oldest);
    }
    released_.pop_front();
  }

  /// May throw.
  std::vector<std::shared_ptr<Record>> live() {
    const std::scoped_lock lock(mutex_);
    std::vector<std::shared_ptr<Record>> found;
    for (const auto& [address, record] : known_) {
      if (!record->released && record->live_rule != nullptr) found.push_back(record);
    }
    return found;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<Record>> known_;
  std::deque<const Record*> released_;
};

}  // namespace fletching::validate

#endif  // FLETCHING_SRC_VALIDATE_RECORD_HPP
