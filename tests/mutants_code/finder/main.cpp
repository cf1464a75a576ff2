// fletching-mutate FOLDER FILE [CLANG_FLAG...]: prints the mutants in FILE and in the files of
// FOLDER that it includes, as JSON.
#include <memory>
#include <string>
#include <vector>

#include "clang/AST/ASTConsumer.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendAction.h"
#include "clang/Tooling/Tooling.h"
#include "finder.hpp"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace fletching::mutate {
namespace {

namespace json = llvm::json;

class Consumer : public clang::ASTConsumer {
 public:
  Consumer(std::string folder, std::vector<Mutant>& found)
      : folder_(std::move(folder)), found_(found) {}

  void HandleTranslationUnit(clang::ASTContext& context) override {
    if (!context.getDiagnostics().hasErrorOccurred()) found_ = find_mutants(context, folder_);
  }

 private:
  std::string folder_;
  std::vector<Mutant>& found_;
};

class Action : public clang::ASTFrontendAction {
 public:
  Action(std::string folder, std::vector<Mutant>& found)
      : folder_(std::move(folder)), found_(found) {}

 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance&,
                                                        llvm::StringRef) override {
    return std::make_unique<Consumer>(folder_, found_);
  }

 private:
  std::string folder_;
  std::vector<Mutant>& found_;
};

json::Object described(const Mutant& mutant) {
  return json::Object{
      {"file", mutant.range.file},   {"begin", mutant.range.begin},   {"end", mutant.range.end},
      {"line", mutant.range.line},   {"column", mutant.range.column}, {"kind", mutant.kind},
      {"function", mutant.function}, {"before", mutant.before},       {"after", mutant.after},
      {"open", mutant.open},         {"close", mutant.close}};
}

}  // namespace
}  // namespace fletching::mutate

int main(int argc, char** argv) {
  using namespace fletching::mutate;
  if (argc < 3) {
    llvm::errs() << "usage: fletching-mutate FOLDER FILE [CLANG_FLAG...]\n";
    return 2;
  }
  const bool is_c = llvm::StringRef(argv[2]).ends_with(".c");
  std::vector<std::string> line = {"fletching-mutate", "-x",
                                   is_c ? "c" : "c++", argv[2],
                                   "-fsyntax-only",    is_c ? "-std=c11" : "-std=c++20",
                                   "-resource-dir",    FLETCHING_CLANG_RESOURCE_DIR};
  line.insert(line.end(), argv + 3, argv + argc);
  std::vector<Mutant> found;
  const auto files = llvm::makeIntrusiveRefCnt<clang::FileManager>(clang::FileSystemOptions());
  clang::tooling::ToolInvocation invocation(line, std::make_unique<Action>(argv[1], found),
                                            files.get());
  if (!invocation.run()) return 2;
  json::Array list;
  for (const Mutant& mutant : found) list.push_back(described(mutant));
  llvm::outs() << json::Value(std::move(list)) << "\n";
  return 0;
}
