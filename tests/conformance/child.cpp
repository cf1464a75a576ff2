// SPDX-License-Identifier: Apache-2.0
#include "child.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "fletching/conformance.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it to the program

namespace fletching::conformance {
namespace {

constexpr int kPipe = 3;  // file descriptor in the child: stdout belongs to the subject
constexpr int kMostProcesses = 100;
constexpr int kNoSubjectCode = 3;

// --- In the child: one JSON object per line, for the start of a case and for its result ---

struct Writer {
  std::string subject;
  int skipped;  // number of cases that earlier processes played
};

void write_line(const nlohmann::json& line) {
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  (void)!write(kPipe, text.data(), text.size());
}

int begin(void* context, const char* group, const char* name) {
  auto& writer = *static_cast<Writer*>(context);
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
  if (!is_hosted) texts.insert(texts.begin(), kChild);
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

nlohmann::json broken_off(const std::string& subject, const std::string& at,
                          const std::string& message) {
  const std::size_t slash = at.find('/');
  return {{"subject", subject},
          {"group", at.substr(0, slash)},
          {"name", at.substr(slash + 1)},
          {"verdict", "wrong"},
          {"answer", ""},
          {"rule", ""},
          {"message", message}};
}

}  // namespace

int run_child(int count, char** arguments) {
  if (count != 5) return 2;
  void* const library = dlopen(arguments[0], RTLD_NOW | RTLD_LOCAL);
  void* const symbol = library == nullptr ? nullptr : dlsym(library, "FletchingConformanceSubject");
  if (symbol == nullptr) {
    std::fprintf(stderr, "fletching_conformance: %s\n", dlerror());
    return 2;
  }
  const auto subjects = reinterpret_cast<FletchingConformanceSubjectFunction>(symbol);
  const FletchingSubject* const subject = subjects(std::atoi(arguments[1]));
  if (subject == nullptr) return kNoSubjectCode;
  Writer writer{subject->name, std::atoi(arguments[4])};
  write_line({{"subject", writer.subject}});
  const FletchingConformanceOptions options{
      sizeof options, or_null(arguments[2]), or_null(arguments[3]), &report, &writer, &begin};
  FletchingMessage message{};
  if (FletchingConformanceRun(subject, &options, nullptr, &message) == 0) return 0;
  std::fprintf(stderr, "fletching_conformance: %s: %s\n", subject->name, message.text);
  return 2;
}

RunStatus run_subject(const Request& request, int seconds, const Report& report) {
  std::string subject;
  int begun = 0;
  for (int i = 0; i < kMostProcesses; ++i) {
    const auto child = start(request, begun);
    if (!child) return RunStatus::kFailed;
    std::string playing;
    const bool ended = read_lines(child->out, seconds, [&](const nlohmann::json& line) {
      if (line.contains("begin")) {
        playing = line["begin"];
        ++begun;
      } else if (line.contains("verdict")) {
        playing.clear();
        report(line);
      } else {
        subject = line["subject"];
      }
    });
    if (!ended) kill(child->id, SIGKILL);
    close(child->out);
    int status = 0;
    waitpid(child->id, &status, 0);
    if (playing.empty()) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == kNoSubjectCode) return RunStatus::kNoSubject;
      const bool is_done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      if (!is_done) std::fprintf(stderr, "fletching_conformance: the process has failed\n");
      return is_done ? RunStatus::kDone : RunStatus::kFailed;
    }
    report(broken_off(subject, playing,
                      ended ? std::string("the process has crashed: ") +
                                  (WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit")
                            : "no end after " + std::to_string(seconds) + " seconds"));
  }
  std::fprintf(stderr, "fletching_conformance: %s: expected at most %d crashes\n", subject.c_str(),
               kMostProcesses - 1);
  return RunStatus::kFailed;
}

}  // namespace fletching::conformance
