// SPDX-License-Identifier: Apache-2.0
//
// A run of the suite: plays the cases of each group in order and checks the answers.
#ifndef FLETCHING_TESTS_CONFORMANCE_RUN_HPP
#define FLETCHING_TESTS_CONFORMANCE_RUN_HPP

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "corpus.h"
#include "fletching/conformance.h"
#include "fletching/validate.h"
#include "hostile.h"

namespace fletching::conformance {

inline constexpr std::int32_t kMostErrno = 4095;  // greatest errno value of any platform

/// A case's cell in the round-trip report (tests/roundtrip/README.md).
struct Cell {
  const char* backend;    // backend of the reference producer
  const char* name;       // name of the producer's case
  std::string direction;  // "stream_failure"
};

/// The answer of a subject: 0, or an errno value and its message.
struct Answer {
  int code = 0;
  std::string text;
};

class Run;

/// A case that is being played. Keeps the first fault, and reports the result at its end.
class Case {
 public:
  Case(Run& run, std::string name) noexcept;
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
  ~Case();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const char* c_str() const noexcept { return name_.c_str(); }
  [[nodiscard]] bool is(std::string_view name) const noexcept { return name_ == name; }
  [[nodiscard]] bool is_wrong() const noexcept { return !fault_.empty(); }

  /// Also reports the result as a cell of the round trip.
  void is_cell(Cell cell) { cell_ = std::move(cell); }
  /// Like is_cell, for a case of the corpus or of the hostile peer.
  void is_corpus_cell();
  /// Counts a struct that the subject did not pass on unchanged, so that its release belongs to the
  /// subject.
  template <class Raw>
  void passed(const Raw& in, const Raw& out) noexcept {
    if (in.release != out.release || in.private_data != out.private_data) ++own_releases_;
  }

  void wrong(const std::string& fault, std::string_view rule = {});
  /// Reports a finding. A note does not make the case wrong.
  void found(const FletchingFinding& finding);
  /// Calls a function whose last argument is a message. A nonzero result is a fault.
  template <class Function, class... Arguments>
  void call(const char* what, Function function, Arguments... arguments) {
    FletchingMessage message{};
    ++compared_;
    if (const int code = function(arguments..., &message); code != 0) {
      wrong(std::string(what) + ": expected 0, got " + std::to_string(code) + ": " + message.text);
    }
  }
  /// Ignores violations of rules with this suffix: the peer violates them, and a subject that
  /// forwards its struct does too.
  void excuse(std::string_view rules) noexcept { excused_ = rules; }
  [[nodiscard]] bool excuses(std::string_view rule) const noexcept {
    return !excused_.empty() && rule.ends_with(excused_);
  }
  /// Reports a call into the library under test.
  void called(const std::string& text) noexcept;
  void not_supported() noexcept { unplayed_ = "not-supported"; }
  void absent() noexcept { unplayed_ = "absent"; }
  /// Sets the answer to "answer: about". `answer` must be a literal.
  void describe(const char* answer, std::string about) noexcept {
    answer_ = answer;
    about_ = std::move(about);
  }
  /// Records the answer. An error without a printable message is a fault.
  void answered(const Answer& answer, bool is_read);
  /// A fault if the subject returned an error.
  void expect_accepted(const Answer& answer);
  /// Whether the answer has the errno value. A subject that rebuilds arrays may report a different
  /// value.
  [[nodiscard]] bool has_code(const Answer& answer, std::int32_t code) const;

 private:
  Run& run_;
  std::string name_;
  const char* unplayed_ = nullptr;  // the verdict of a case that was not played
  const char* answer_ = "";
  std::string about_;
  std::string_view excused_;
  std::string fault_;
  std::string rule_;
  std::optional<Cell> cell_;
  std::int64_t compared_ = 0;
  std::int64_t own_releases_ = 0;
};

/// Options for the validation layer. Each finding is a fault of the case in play. `party` limits
/// the findings to the "producer" or the "consumer"; NULL: any.
FletchingValidateOptions layer(std::int32_t level, const char* party = nullptr) noexcept;

/// Reports a call into the library under test for the case in play, on any thread.
void note_call(const std::string& text);

/// A case of the hostile peer (tests/hostile).
struct Peer {
  std::string name;
  std::int32_t outcome;
  std::int32_t code;
};

/// A case of the corpus (tests/corpus).
struct Data {
  std::int32_t index;
  std::string name;
  bool is_refused;
  std::string rule;
};

class Run {
 public:
  Run(const FletchingSubject& subject, const FletchingConformanceOptions& options) noexcept
      : subject(subject), options_(options) {}

  const FletchingSubject& subject;

  void enter(const char* group) noexcept { group_ = group; }
  /// Whether to play the case. Call it once per case.
  bool begin(const char* name);
  void report(const FletchingConformanceResult& result) noexcept;
  void report(const FletchingFinding& finding) const noexcept {
    if (options_.finding != nullptr) options_.finding(options_.context, &finding);
  }
  void report_call(const std::string& text) const noexcept {
    if (options_.call != nullptr) options_.call(options_.context, text.c_str());
  }
  /// Appends a cell to the file in FLETCHING_CELLS if the subject is named by FLETCHING_COLUMN.
  void report(const Cell& cell, const FletchingConformanceResult& result, std::int64_t compared,
              std::int64_t own_releases) const;

  [[nodiscard]] const char* group() const noexcept { return group_; }
  [[nodiscard]] std::int64_t wrong() const noexcept { return wrong_; }
  [[nodiscard]] std::int64_t begun() const noexcept { return begun_; }
  /// The message if no case has the wanted name.
  [[nodiscard]] std::string unknown_case() const;

 private:
  const FletchingConformanceOptions& options_;
  const char* group_ = "";
  std::int64_t wrong_ = 0;
  std::int64_t begun_ = 0;
  std::string similar_;        // the known name that begins most like the wanted one
  std::ptrdiff_t shared_ = 0;  // the number of characters
};

/// A group of cases. Results and filters use its name.
struct Group {
  const char* name;
  void (*play)(Run& run);
};

std::span<const Group> groups() noexcept;

/// Copies options of this version or of an earlier one. Returns false if their size is unknown.
bool copy_options(const FletchingConformanceOptions& source,
                  FletchingConformanceOptions* out) noexcept;

void play_schemas(Run& run);
void play_arrays(Run& run);
void play_children(Run& run);
void play_array_consumers(Run& run);
void play_streams(Run& run);
void play_device_streams(Run& run);
void play_stream_consumers(Run& run);
void play_tensors(Run& run);
void play_legacy_tensors(Run& run);
void play_random_tensors(Run& run);
void play_receivers(Run& run);
void play_senders(Run& run);
void play_catalogue_arrays(Run& run);
void play_catalogue_streams(Run& run);
void play_events(Run& run);
void play_devices(Run& run);
void play_producer_traces(Run& run);
void play_consumer_traces(Run& run);

/// Ends a case of the peer, or a part of one. The peer's record must be clean.
void expect_finished(Case& played);

/// Plays the hostile peer's cases for one party. After each, its record must be clean.
template <class Play>
void each_peer(Run& run, std::int32_t party, bool is_supported, const Play& play) {
  for (std::int32_t i = 0; i < FletchingHostileCaseCount(); ++i) {
    const Peer peer{FletchingHostileCaseName(i), FletchingHostileCaseOutcome(i),
                    FletchingHostileCaseCode(i)};
    if (FletchingHostileCaseParty(i) != party || !run.begin(peer.name.c_str())) continue;
    Case played(run, peer.name);
    played.is_corpus_cell();
    if (!is_supported) {
      played.not_supported();
      continue;
    }
    if (peer.code > kMostErrno) played.excuse("errno-codes");
    play(played, peer);
    expect_finished(played);
  }
}

/// Plays the cases of one kind of the corpus. After each, its record must be clean.
template <class Play>
void each_data(Run& run, std::int32_t kind, bool is_supported, const Play& play) {
  for (std::int32_t i = 0; i < FletchingCorpusCount(); ++i) {
    const char* const rule = FletchingCorpusText(i, "rule");
    const Data data{i, FletchingCorpusName(i), FletchingCorpusVerdict(i) == kFletchingCorpusRefuse,
                    rule == nullptr ? "" : rule};
    if (FletchingCorpusKind(i) != kind || !run.begin(data.name.c_str())) continue;
    Case played(run, data.name);
    played.is_corpus_cell();
    if (!is_supported) {
      played.not_supported();
      continue;
    }
    play(played, data);
    played.call("the account of the corpus", FletchingCorpusFinish);
  }
}

/// Compares the answer with the peer's catalogue. A subject that does not check may pass an invalid
/// struct on.
void judge(Case& played, const Peer& peer, const Answer& answer, bool has_to_look);

/// Calls a function of the subject and returns its result and message.
template <class Function, class... Arguments>
Answer ask(const FletchingSubject& subject, Function function, Arguments... arguments) {
  FletchingMessage message{};
  const int code = function(subject.context, arguments..., &message);
  return {code, message.text};
}

template <class Raw>
void release_left(Raw& raw) {
  if (raw.release != nullptr) raw.release(&raw);
}
inline void release_left(ArrowDeviceArray& raw) { release_left(raw.array); }

inline const ArrowArray& base_of(const ArrowArray& array) noexcept { return array; }
inline const ArrowArray& base_of(const ArrowDeviceArray& array) noexcept { return array.array; }

template <class Raw>
bool is_released(const Raw& raw) {
  return raw.release == nullptr;
}
inline bool is_released(const ArrowDeviceArray& raw) { return is_released(raw.array); }

/// Clears the output of a failed call, which must not be used.
template <class Raw>
void forget(Raw& raw) {
  raw = Raw{};
}

/// A struct that is released at the end of the scope.
template <class Raw>
struct Held {
  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { release_left(value); }

  Raw* operator&() noexcept { return &value; }  // NOLINT(google-runtime-operator): an out-argument

  Raw value{};
};

/// Checks for the peer's int32 values 1, 2, 3 in the array or in each of its children.
void check_values(Case& played, const ArrowArray& array);

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_RUN_HPP
