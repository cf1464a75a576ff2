// SPDX-License-Identifier: Apache-2.0
//
// Records of wrapped objects, and the log to which they report findings.
#ifndef FLETCHING_SRC_VALIDATE_RECORD_HPP
#define FLETCHING_SRC_VALIDATE_RECORD_HPP

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#if !defined(_WIN32) && !defined(__wasi__)
#include <pthread.h>
#endif

#include "fletching/validate.h"
#include "rules.hpp"
#include "stress.hpp"

namespace fletching::validate {

inline constexpr std::size_t kKeptRecords = 4096;
inline constexpr std::size_t kKeptCalls = 16;

struct Record;

/// Recent calls on a stream and its batches, and the destination of findings.
class Log {
 public:
  explicit Log(const FletchingValidateOptions& options) noexcept : options_(options) {}

  [[nodiscard]] std::int32_t level() const noexcept { return options_.level; }
  [[nodiscard]] bool has(std::uint32_t stress) const noexcept {
    return (options_.stress & stress) != 0;
  }

  /// Delays the release of an object. Returns false if it is due at once.
  bool delay(const std::shared_ptr<Record>& record) noexcept;
  /// Runs the delayed releases.
  void release_delayed() noexcept;
  /// Handles the stream's release: every later release is due at once.
  void end() noexcept;

  Texts texts;

  void note(const char* call, std::int64_t index, int code) noexcept {
    const std::scoped_lock lock(mutex_);
    calls_[noted_++ % kKeptCalls] = {call, index, code};
  }

  /// Reports the rule even if out of memory for the call history.
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
  bool is_over_ = false;
  std::vector<std::shared_ptr<Record>> delayed_;
};

/// Builds a string for a finding. Returns an empty string if out of memory.
template <class Make>
std::string text_or_empty(const Make& make) noexcept {
  try {
    return make();
  } catch (...) {
    return {};
  }
}

/// Path of a finding: "get_next[2].array".
struct Path {
  [[nodiscard]] std::string text() const {
    std::string text(call);
    if (index >= 0) text.append("[").append(std::to_string(index)).append("]");
    return text.append(member);
  }

  const char* call = "";
  std::int64_t index = -1;  // -1: no index
  const char* member = "";
};

/// A wrapped object. Its key is the private_data of its struct.
struct Record {
  Record() = default;
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;
  virtual ~Record() = default;

  /// Returns the private_data of its struct.
  [[nodiscard]] void* key() noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(this);
    return reinterpret_cast<void*>(log->has(FLETCHING_STRESS_PRIVATE_DATA) ? ~address : address);
  }
  /// Calls the producer's release callback.
  virtual void release_inner() noexcept {}

  void report(Rule rule, const Path& at, const char* message,
              const char* party = nullptr) noexcept {
    log->report(facts(rule), party, text_or_empty([&] { return at.text(); }).c_str(), message);
  }

  std::shared_ptr<Log> log;
  Path path;
  std::atomic<const Rule*> live_rule = nullptr;  // rule that a missing release breaks
  std::atomic<const void*> self = nullptr;       // last known address of the struct
  std::atomic<bool> released = false;
};

inline bool Log::delay(const std::shared_ptr<Record>& record) noexcept {
  if (!has(FLETCHING_STRESS_DELAY)) return false;
  try {
    const std::scoped_lock lock(mutex_);
    if (!is_over_) delayed_.push_back(record);
    return !is_over_;
  } catch (...) {
    return false;
  }
}

inline void Log::release_delayed() noexcept {
  std::vector<std::shared_ptr<Record>> due;
  {
    const std::scoped_lock lock(mutex_);
    due.swap(delayed_);
  }
  for (const auto& record : due) record->release_inner();
}

inline void Log::end() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  texts.end_all();
  release_delayed();
}

/// Live records and recently released ones. Never destroyed, because a program may release a batch
/// during exit.
class Records {
 public:
  static Records& get() {
    static auto* const records = new Records;
    return *records;
  }

#if !defined(_WIN32) && !defined(__wasi__)
  /// Holds the lock during each fork. Otherwise a child could inherit it locked by a thread that it
  /// lacks, or wait for that thread to finish get(). Returns 0, or an errno value.
  static int hold_during_forks() noexcept {
    return pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                          [] { get().mutex_.unlock(); });
  }
#endif

  /// May throw.
  void add(const std::shared_ptr<Record>& record) {
    const std::scoped_lock lock(mutex_);
    known_.emplace(record->key(), record);
  }

  void remove(Record& record) noexcept {
    const std::scoped_lock lock(mutex_);
    known_.erase(record.key());
  }

  /// Returns the record with a key, or NULL if no record of this type has it.
  template <class Kind>
  std::shared_ptr<Kind> find(const void* key) noexcept {
    const std::scoped_lock lock(mutex_);
    const auto found = known_.find(key);
    return found == known_.end() ? nullptr : std::dynamic_pointer_cast<Kind>(found->second);
  }

  /// Returns the live record whose struct was last seen at an address.
  template <class Kind>
  std::shared_ptr<Kind> find_struct(const void* self) noexcept {
    const std::scoped_lock lock(mutex_);
    for (const auto& [key, record] : known_) {
      if (record->self != self || record->released) continue;
      if (auto kind = std::dynamic_pointer_cast<Kind>(record)) return kind;
    }
    return nullptr;
  }

  /// Keeps a released record and drops the oldest if there are too many. If out of memory, keeps
  /// the record forever.
  void retire(Record& record) noexcept {
    std::shared_ptr<Record> dropped;  // destroyed without the lock
    const std::scoped_lock lock(mutex_);
    try {
      released_.push_back(record.key());
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
    for (const auto& [key, record] : known_) {
      if (!record->released && record->live_rule != nullptr) found.push_back(record);
    }
    return found;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<Record>> known_;
  std::deque<const void*> released_;
};

#if !defined(_WIN32) && !defined(__wasi__)
inline const int g_fork_handlers = Records::hold_during_forks();  // when the library is loaded
#endif

/// Reports the selected live records. Returns their number, or -1 if out of memory.
template <class Select>
std::int64_t report_live(const Select& select) noexcept {
  try {
    std::int64_t count = 0;
    for (const auto& record : Records::get().live()) {
      if (!select(*record)) continue;
      ++count;
      record->report(*record->live_rule.load(), record->path,
                     "is not released: expected a release");
    }
    return count;
  } catch (...) {
    return -1;
  }
}

/// Registers a report of live objects at exit, for streams with the stress option.
inline void report_at_exit() noexcept {
  static std::atomic_flag is_registered;
  if (is_registered.test_and_set()) return;
  std::atexit([] {
    report_live(
        [](const Record& record) { return record.log->has(FLETCHING_STRESS_REPORT_AT_EXIT); });
  });
}

}  // namespace fletching::validate

#endif  // FLETCHING_SRC_VALIDATE_RECORD_HPP
