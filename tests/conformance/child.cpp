// SPDX-License-Identifier: Apache-2.0
#include "child.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "fletching/conformance.h"
#include "fletching/roles.h"
#include "fletching/validate.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to the program

namespace fletching::conformance {
namespace {

constexpr int kPipe = 3;  // file descriptor in the child: stdout belongs to the subject
constexpr int kNoSubjectCode = 3;

// --- In the child: one JSON object per line, for the start of a case and for its result ---

struct Writer {
  std::string subject;
  int skipped;  // number of cases that earlier processes played
  std::span<char*> excluded;
};

/// The layer reports from any thread.
void write_line(const nlohmann::json& line) {
  static std::mutex mutex;
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const std::scoped_lock lock(mutex);
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t size = write(kPipe, text.data() + at, text.size() - at);
    if (size < 0 && errno != EINTR) return;
    if (size > 0) at += static_cast<std::size_t>(size);
  }
}

int begin(void* context, const char* group, const char* name) {
  auto& writer = *static_cast<Writer*>(context);
  const auto is_name = [=](const char* excluded) { return std::strcmp(excluded, name) == 0; };
  if (std::ranges::any_of(writer.excluded, is_name)) return 1;
  if (writer.skipped-- > 0) return 1;
  write_line({{"begin", std::string(group) + "/" + name}});
  return 0;
}

void report(void* context, const FletchingConformanceResult* result) {
  write_line({{"subject", static_cast<Writer*>(context)->subject},
              {"group", result->group},
              {"name", result->name},
              {"verdict", result->verdict},
              {"answer", result->answer},
              {"rule", result->rule},
              {"message", result->message}});
}

void find(void* /*context*/, const FletchingFinding* finding) {
  write_line({{"finding",
               {{"rule", finding->rule},
                {"severity", finding->severity},
                {"party", finding->party},
                {"path", finding->path},
                {"message", finding->message},
                {"history", finding->history}}}});
}

void note_call(void* /*context*/, const char* text) { write_line({{"call", text}}); }

int fail(const std::string& text) {
  write_line({{"error", text}});
  return 2;
}

const char* or_null(const char* text) { return *text == '\0' ? nullptr : text; }

// --- In the parent ---

struct Child {
  pid_t id = -1;
  int out = -1;
};

std::optional<Child> start(const Request& request, int skipped) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_adddup2(&actions, ends[1], kPipe);
  if (ends[1] != kPipe) posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<std::string> texts{request.library, std::to_string(request.subject), request.group,
                                 request.case_name, std::to_string(skipped)};
  const bool is_hosted = !request.host.empty();
  const std::string program = is_hosted ? request.host : "/proc/self/exe";
  if (!is_hosted) {
    texts.insert(texts.begin(), kChild);
    texts.insert(texts.end(), {request.function, request.role, std::to_string(request.level)});
    texts.insert(texts.end(), request.skipped.begin(), request.skipped.end());
  }
  texts.insert(texts.begin(), program);
  std::vector<char*> arguments;
  arguments.reserve(texts.size() + 1);
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  Child child{-1, ends[0]};
  const int code =
      posix_spawn(&child.id, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (code == 0) return child;
  close(ends[0]);
  return std::nullopt;
}

/// Reads lines until the child closes its end. Returns false if the child is silent for too long.
template <class Line>
bool read_lines(int file, int seconds, const Line& line) {
  std::string text;
  for (;;) {
    pollfd waiting{file, POLLIN, 0};
    const int ready = poll(&waiting, 1, seconds * 1000);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char block[4096];
    const ssize_t size = read(file, block, sizeof block);
    if (size <= 0) return true;
    text.append(block, static_cast<std::size_t>(size));
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      line(nlohmann::json::parse(text.substr(0, end)));
      text.erase(0, end + 1);
    }
  }
}

nlohmann::json broken_off(const std::string& subject, const std::string& at, const char* ended,
                          const std::string& message) {
  const std::size_t slash = at.find('/');
  return {{"subject", subject},
          {"group", at.substr(0, slash)},
          {"name", at.substr(slash + 1)},
          {"verdict", "wrong"},
          {"answer", ""},
          {"rule", ""},
          {"message", message},
          {"ended", ended}};
}

/// The result of a case in which the process has crashed, exited or, without an end, been killed.
nlohmann::json how_it_ended(const std::string& subject, const std::string& at, bool ended,
                            int status, int seconds) {
  if (!ended) {
    return broken_off(subject, at, "hang", "no end after " + std::to_string(seconds) + " seconds");
  }
  if (WIFSIGNALED(status)) {
    return broken_off(subject, at, "crash",
                      std::string("the process has crashed: ") + strsignal(WTERMSIG(status)));
  }
  return broken_off(subject, at, "exit", "the process has crashed: exit");
}

}  // namespace

int run_child(int count, char** arguments) {
  if (count < 8) return 2;
  const bool is_function = *arguments[5] != '\0';
  const int index = std::atoi(arguments[1]);
  void* const library = dlopen(arguments[0], RTLD_NOW | RTLD_LOCAL);
  void* const symbol =
      library == nullptr
          ? nullptr
          : dlsym(library, is_function ? arguments[5] : "FletchingConformanceSubject");
  if (symbol == nullptr) return fail(dlerror());
  if (is_function && index != 0) return kNoSubjectCode;
  const FletchingSubject* const subject =
      is_function ? nullptr : reinterpret_cast<FletchingConformanceSubjectFunction>(symbol)(index);
  if (!is_function && subject == nullptr) return kNoSubjectCode;
  const std::span excluded(arguments + 8, static_cast<std::size_t>(count - 8));
  Writer writer{is_function ? arguments[5] : subject->name, std::atoi(arguments[4]), excluded};
  write_line({{"subject", writer.subject}});
  const FletchingConformanceOptions options{
      sizeof options, or_null(arguments[2]), or_null(arguments[3]), &report, &writer, &begin, &find,
      &note_call};
  FletchingMessage message{};
  const int code = is_function ? FletchingConformanceRunFunction(
                                     arguments[6], reinterpret_cast<void (*)()>(symbol),
                                     std::atoi(arguments[7]), &options, nullptr, &message)
                               : FletchingConformanceRun(subject, &options, nullptr, &message);
  return code == 0 ? 0 : fail(writer.subject + ": " + message.text);
}

RunStatus run_subject(const Request& request, int seconds, const Report& report) {
  std::string subject;
  int begun = 0;
  int hangs = 0;
  for (int i = 0; i < kMostProcesses && hangs < request.most_hangs; ++i) {
    const auto child = start(request, begun);
    if (!child) return RunStatus::kFailed;
    std::string playing;
    bool has_said = false;  // why it could not run
    const bool ended = read_lines(child->out, seconds, [&](const nlohmann::json& line) {
      if (line.contains("begin")) {
        playing = line["begin"];
        ++begun;
      } else if (line.contains("verdict")) {
        playing.clear();
      } else if (line.contains("error")) {
        playing.clear();
        has_said = true;
      } else if (line.contains("subject")) {
        subject = line["subject"];
      }
      report(line);
    });
    if (!ended) kill(child->id, SIGKILL);
    close(child->out);
    int status = 0;
    waitpid(child->id, &status, 0);
    if (playing.empty()) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == kNoSubjectCode) return RunStatus::kNoSubject;
      const bool is_done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      if (!is_done && !has_said)
        std::fprintf(stderr, "fletching_conformance: the process has failed\n");
      return is_done ? RunStatus::kDone : RunStatus::kFailed;
    }
    report(how_it_ended(subject, playing, ended, status, seconds));
    if (!ended) ++hangs;
  }
  report({{"error", subject + ": stopped after " + std::to_string(hangs) + " hangs, of at most " +
                        std::to_string(kMostProcesses) + " crashes and hangs"}});
  return RunStatus::kFailed;
}

}  // namespace fletching::conformance
