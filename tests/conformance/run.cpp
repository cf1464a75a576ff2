// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>

#include "fletching/detail/message.hpp"
#include "rebuilt.hpp"

namespace fletching::conformance {
namespace {

// Sizes in the first version.
constexpr std::size_t kLeastOptions = offsetof(FletchingConformanceOptions, begin);
constexpr std::size_t kLeastSubject = offsetof(FletchingSubject, synchronize);

// All flags except the report at exit.
constexpr const char* kStressVariable = "FLETCHING_CONFORMANCE_STRESS";
constexpr std::uint32_t kStress = FLETCHING_STRESS_POISON | FLETCHING_STRESS_MOVE |
                                  FLETCHING_STRESS_PRIVATE_DATA | FLETCHING_STRESS_THREAD |
                                  FLETCHING_STRESS_DELAY;

/// Copies a struct of this version or of an earlier one.
template <class Struct>
bool copy(const Struct& source, std::size_t least, Struct* out) noexcept {
  if (source.size < least || source.size > sizeof source) return false;
  std::memcpy(out, &source, source.size);
  return true;
}

constexpr std::array kGroups{
    Group{"schemas", play_schemas},
    Group{"arrays", play_arrays},
    Group{"children", play_children},
    Group{"array-consumers", play_array_consumers},
    Group{"streams", play_streams},
    Group{"device-streams", play_device_streams},
    Group{"stream-consumers", play_stream_consumers},
    Group{"tensors", play_tensors},
    Group{"legacy-tensors", play_legacy_tensors},
    Group{"random-tensors", play_random_tensors},
    Group{"receivers", play_receivers},
    Group{"senders", play_senders},
    Group{"catalogue-arrays", play_catalogue_arrays},
    Group{"catalogue-streams", play_catalogue_streams},
    Group{"events", play_events},
    Group{"devices", play_devices},
    Group{"producer-traces", play_producer_traces},
    Group{"consumer-traces", play_consumer_traces},
};

// The layer may report from any thread, and about a struct that an earlier case released.
std::recursive_mutex g_mutex;
Case* g_played = nullptr;

void find(void* context, const FletchingFinding* finding) {
  const std::string_view party = finding->party;
  if (context != nullptr && party != static_cast<const char*>(context) && party != "both") return;
  const std::scoped_lock lock(g_mutex);
  if (g_played == nullptr || g_played->excuses(finding->rule)) return;
  g_played->found(*finding);
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(
      text, [](unsigned char c) { return (c >= ' ' && c != 0x7F) || c == '\n' || c == '\t'; });
}

int failed(FletchingMessage* message, int code, std::string_view text) noexcept {
  fletching::detail::write_message(message, text);
  return code;
}

bool is_group(const char* name) {
  return std::ranges::any_of(
      kGroups, [&](const Group& group) { return std::string_view(group.name) == name; });
}

}  // namespace

std::span<const Group> groups() noexcept { return kGroups; }

bool copy_options(const FletchingConformanceOptions& source,
                  FletchingConformanceOptions* out) noexcept {
  return copy(source, kLeastOptions, out);
}

Case::Case(Run& run, std::string name) noexcept : run_(run), name_(std::move(name)) {
  const std::scoped_lock lock(g_mutex);
  g_played = this;
}

Case::~Case() {
  {
    const std::scoped_lock lock(g_mutex);
    g_played = nullptr;
  }
  const char* const played = is_wrong() ? "wrong" : "right";
  const char* const verdict = unplayed_ != nullptr ? unplayed_ : played;
  const std::string answer = about_.empty() ? answer_ : answer_ + (": " + about_);
  const FletchingConformanceResult result{run_.group(),   name_.c_str(), verdict,
                                          answer.c_str(), rule_.c_str(), fault_.c_str()};
  run_.report(result);
  if (cell_) run_.report(*cell_, result, compared_, own_releases_);
}

void Case::is_corpus_cell() { is_cell({"cpu", c_str(), run_.group()}); }

void Case::wrong(const std::string& fault, std::string_view rule) {
  const std::string id(rule);
  const std::scoped_lock lock(g_mutex);
  run_.report(FletchingFinding{id.c_str(), "error", "", "", fault.c_str(), ""});
  if (is_wrong()) return;
  fault_ = fault;
  rule_ = rule;
}

void Case::found(const FletchingFinding& finding) {
  const std::scoped_lock lock(g_mutex);
  run_.report(finding);
  if (is_wrong() || std::string_view(finding.severity) == "note") return;
  fault_ = std::string(finding.path) + ": " + finding.message + ", after " + finding.history;
  rule_ = finding.rule;
}

void Case::called(const std::string& text) noexcept { run_.report_call(text); }

void Case::answered(const Answer& answer, bool is_read) {
  if (answer.code != 0) {
    answer_ = "refused";
  } else {
    answer_ = is_read ? "accepted" : "carried";
  }
  if (answer.code < 0) wrong("expected a positive errno value, got " + std::to_string(answer.code));
  if (!is_printable(answer.text)) wrong("expected a text that can be printed");
}

void Case::expect_accepted(const Answer& answer) {
  if (answer.code == 0) return;
  if (answer.code == ENOTSUP || answer.code == ENOSYS) return not_supported();
  wrong("expected success, got errno " + std::to_string(answer.code) + ": " + answer.text);
}

bool Case::has_code(const Answer& answer, std::int32_t code) const {
  return answer.code == code || (rebuilds(run_.subject) && code != 0 && answer.code > 0);
}

void note_call(const std::string& text) {
  const std::scoped_lock lock(g_mutex);
  if (g_played != nullptr) g_played->called(text);
}

FletchingValidateOptions layer(std::int32_t level, const char* party) noexcept {
  const std::uint32_t stress = std::getenv(kStressVariable) == nullptr ? 0 : kStress;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): find does not write to it
  return {sizeof(FletchingValidateOptions), level, &find, const_cast<char*>(party), stress};
}

namespace {

/// A pattern is a name, or a prefix and a star.
bool fits(std::string_view name, const char* pattern) {
  if (pattern == nullptr) return true;
  const std::string_view text(pattern);
  return text.ends_with('*') ? name.starts_with(text.substr(0, text.size() - 1)) : name == text;
}

}  // namespace

bool Run::begin(const char* name) {
  if (!fits(name, options_.case_name)) {
    const std::string_view known(name);
    const std::string_view wanted(options_.case_name);
    const auto shared = std::ranges::mismatch(known, wanted).in1 - known.begin();
    if (similar_.empty() || shared > shared_) {
      similar_ = known;
      shared_ = shared;
    }
    return false;
  }
  ++begun_;
  return options_.begin == nullptr || options_.begin(options_.context, group_, name) == 0;
}

std::string Run::unknown_case() const {
  return "options: case_name (--case) is unknown: expected a name such as '" + similar_ +
         "', got '" + (options_.case_name == nullptr ? "" : options_.case_name) + "'";
}

void Run::report(const FletchingConformanceResult& result) noexcept {
  if (std::string_view(result.verdict) == "wrong") ++wrong_;
  if (options_.report != nullptr) options_.report(options_.context, &result);
}

void judge(Case& played, const Peer& peer, const Answer& answer, bool has_to_look) {
  const bool is_odd = peer.outcome == kFletchingHostileRefused;
  played.answered(answer, has_to_look || !is_odd);
  const auto got = answer.code == 0 ? std::string("success")
                                    : "errno " + std::to_string(answer.code) + ": " + answer.text;
  if (peer.outcome == kFletchingHostileAccepted) played.expect_accepted(answer);
  if (answer.text.find("####") != std::string::npos) {
    played.wrong("expected the text of the call, got what the peer wrote there later");
  }
  if (is_odd && has_to_look && answer.code == 0) played.wrong("expected an error, got success");
  if (is_odd && answer.code != 0 && answer.text.empty()) {
    played.wrong("expected a text for errno " + std::to_string(answer.code) + ", got none");
  }
  if (peer.outcome == kFletchingHostileReported && !played.has_code(answer, peer.code)) {
    played.wrong("expected errno " + std::to_string(peer.code) + ", got " + got);
  }
}

void expect_finished(Case& played) {
  played.call("the account of the peer", FletchingHostileFinish);
}

void check_values(Case& played, const ArrowArray& array) {
  for (std::int64_t i = 0; i < array.n_children; ++i) check_values(played, *array.children[i]);
  if (array.n_children != 0) return;
  const auto* const values =
      array.n_buffers == 2 ? static_cast<const std::int32_t*>(array.buffers[1]) : nullptr;
  const bool is_good = array.length == 3 && array.offset == 0 && values != nullptr &&
                       values[0] == 1 && values[1] == 2 && values[2] == 3;
  if (!is_good) played.wrong("expected the values 1, 2, 3");
}

}  // namespace fletching::conformance

extern "C" {

const char* FletchingConformanceGroup(int32_t index) {
  const auto groups = fletching::conformance::groups();
  const auto at = static_cast<std::size_t>(index);
  return index < 0 || at >= groups.size() ? nullptr : groups[at].name;
}

int FletchingConformanceRun(const FletchingSubject* subject,
                            const FletchingConformanceOptions* options, int64_t* wrong,
                            FletchingMessage* message) {
  using namespace fletching::conformance;
  if (subject == nullptr) return failed(message, EINVAL, "subject: expected a table, got NULL");
  FletchingSubject played{};
  if (!copy(*subject, kLeastSubject, &played)) {
    return failed(message, EINVAL, "subject: size is unknown");
  }
  FletchingConformanceOptions chosen{};
  if (options != nullptr && !copy_options(*options, &chosen)) {
    return failed(message, EINVAL, "options: size is unknown");
  }
  if (chosen.group != nullptr && !is_group(chosen.group)) {
    return failed(message, EINVAL, "options: group is unknown");
  }
  try {
    Run run(played, chosen);
    for (const Group& group : groups()) {
      if (chosen.group != nullptr && std::string_view(group.name) != chosen.group) continue;
      run.enter(group.name);
      group.play(run);
    }
    if (run.begun() == 0) return failed(message, EINVAL, run.unknown_case());
    if (wrong != nullptr) *wrong = run.wrong();
  } catch (const std::bad_alloc&) {
    return failed(message, ENOMEM, "no memory for a case");
  }
  return failed(message, 0, "");
}
}
