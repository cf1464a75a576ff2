// fletching-extract: reads a C or C++ header like each target's compiler and prints its
// declarations as JSON.
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clang/Basic/FileManager.h"
#include "json.hpp"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include "run.hpp"
#include "stand_ins.hpp"
#include "targets.hpp"

namespace fletching::extract {
namespace {

namespace fs = llvm::sys::fs;

constexpr char kUsage[] =
    "usage: fletching-extract [--as c] [--as c++] [--target TRIPLE]... FILE [-- CLANG_FLAG...]\n"
    "Prints what FILE declares as JSON, once for each language and target. FILE `-` is standard "
    "input.\n";
constexpr size_t kBinaryCheckSize = 65536;

struct Options {
  bool help = false;
  std::vector<std::string> languages;
  std::vector<std::string> targets;
  Input input;
};

llvm::Error take_argument(const std::vector<std::string>& arguments, size_t& i, Options& options) {
  const std::string& argument = arguments[i];
  if (argument == "--as" || argument == "--target") {
    if (i + 1 == arguments.size()) return llvm::createStringError(argument + " needs a value");
    const std::string& value = arguments[++i];
    if (argument == "--target") {
      options.targets.push_back(value);
      return check_triple(value);
    }
    if (value != "c" && value != "c++") {
      return llvm::createStringError("--as takes c or c++, not '" + value + "'");
    }
    options.languages.push_back(value);
  } else if (argument != "-" && llvm::StringRef(argument).starts_with("-")) {
    return llvm::createStringError("unknown option '" + argument +
                                   "'; flags for clang go after --");
  } else if (!options.input.file.empty()) {
    return llvm::createStringError("one FILE at a time: '" + options.input.file + "' or '" +
                                   argument + "'?");
  } else {
    options.input.file = argument;
  }
  return llvm::Error::success();
}

llvm::Expected<Options> parse_options(const std::vector<std::string>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--help") {
      options.help = true;
      return options;
    }
    if (arguments[i] == "--") {
      options.input.flags.assign(arguments.begin() + static_cast<ptrdiff_t>(i) + 1,
                                 arguments.end());
      break;
    }
    if (llvm::Error error = take_argument(arguments, i, options)) return error;
  }
  if (options.input.file.empty()) return llvm::createStringError("FILE is missing; see --help");
  if (options.languages.empty()) options.languages = {"c", "c++"};
  if (options.targets.empty()) options.targets = {"x86_64-linux-gnu"};
  return options;
}

llvm::Error cannot_read(llvm::StringRef name, const llvm::Twine& what) {
  return llvm::createStringError("cannot read " + name + ": " + what);
}

llvm::Error check_text(llvm::StringRef name, llvm::StringRef start) {
  if (!start.contains('\0')) return llvm::Error::success();
  return cannot_read(name, "it has NUL bytes: this is a binary file or UTF-16, not a header");
}

llvm::Error check_file(const std::string& path) {
  const auto bad = [&path](const llvm::Twine& what) { return cannot_read(path, what); };
  fs::file_status status;
  if (const std::error_code code = fs::status(path, status)) return bad(code.message());
  if (fs::is_directory(status)) return bad("it is a directory; name a header in it");
  if (!fs::is_regular_file(status)) return bad("it is not a regular file");
  llvm::Expected<fs::file_t> file = fs::openNativeFileForRead(path);
  if (!file) return bad(llvm::toString(file.takeError()));
  std::vector<char> start(kBinaryCheckSize);
  llvm::Expected<size_t> size = fs::readNativeFile(*file, start);
  const std::error_code closed = fs::closeFile(*file);
  if (!size) return bad(llvm::toString(size.takeError()));
  if (closed) return bad(closed.message());
  return check_text(path, llvm::StringRef(start.data(), *size));
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> read_standard_input() {
  auto text = llvm::MemoryBuffer::getSTDIN();
  if (!text) return cannot_read(kStandardInput, text.getError().message());
  if (llvm::Error error = check_text(kStandardInput, (*text)->getBuffer())) return error;
  return std::move(*text);
}

llvm::Expected<llvm::json::Array> extract_all(const Options& options,
                                              std::unique_ptr<llvm::MemoryBuffer> standard_input) {
  // Shared by all runs, so that every file is looked up once.
  const auto files = llvm::makeIntrusiveRefCnt<clang::FileManager>(
      clang::FileSystemOptions(), file_system(std::move(standard_input)));
  llvm::json::Array runs;
  for (const std::string& language : options.languages) {
    for (const std::string& target : options.targets) {
      llvm::Expected<llvm::json::Object> facts =
          extract_facts(options.input, {language, target}, *files);
      if (!facts) return facts.takeError();
      runs.push_back(std::move(*facts));
    }
  }
  return runs;
}

llvm::Error run_command_line(const std::vector<std::string>& arguments) {
  llvm::Expected<Options> options = parse_options(arguments);
  if (!options) return options.takeError();
  if (options->help) {
    llvm::outs() << kUsage;
    return llvm::Error::success();
  }
  std::unique_ptr<llvm::MemoryBuffer> standard_input;
  if (options->input.file == "-") {
    auto text = read_standard_input();
    if (!text) return text.takeError();
    standard_input = std::move(*text);
    options->input.file = kStandardInput;
  } else if (llvm::Error error = check_file(options->input.file)) {
    return error;
  }
  llvm::Expected<llvm::json::Array> runs = extract_all(*options, std::move(standard_input));
  if (!runs) return runs.takeError();
  llvm::outs() << llvm::json::Value(llvm::json::Object{{"file", json_text(options->input.file)},
                                                       {"runs", std::move(*runs)}})
               << "\n";
  return llvm::Error::success();
}

// Some input crashes clang, such as 100,000 open brackets.
void report_crash(void*) {
  llvm::errs() << "fletching-extract: clang crashed on this header; is it nested too deeply?\n";
  std::_Exit(2);
}

}  // namespace
}  // namespace fletching::extract

int main(int argc, char** argv) {
  llvm::sys::AddSignalHandler(fletching::extract::report_crash, nullptr);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (llvm::Error error = fletching::extract::run_command_line(arguments)) {
    llvm::errs() << "fletching-extract: " << llvm::toString(std::move(error)) << "\n";
    return 2;
  }
  return 0;
}
