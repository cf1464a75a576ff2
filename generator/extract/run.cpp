#include "run.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "clang/AST/ASTConsumer.h"
#include "clang/Basic/Diagnostic.h"
#include "clang/Basic/TargetInfo.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendAction.h"
#include "clang/Parse/Parser.h"
#include "clang/Sema/EnterExpressionEvaluationContext.h"
#include "clang/Sema/Sema.h"
#include "clang/Tooling/Tooling.h"
#include "declarations.hpp"
#include "json.hpp"
#include "macros.hpp"
#include "stand_ins.hpp"

namespace fletching::extract {
namespace {

namespace json = llvm::json;

// Enough to explain the problem; later errors mostly follow from the first.
constexpr unsigned kMostOfAKind = 3;

llvm::StringRef severity_name(clang::DiagnosticsEngine::Level level) {
  if (level == clang::DiagnosticsEngine::Fatal) return "fatal";
  return level == clang::DiagnosticsEngine::Error ? "error" : "warning";
}

class Diagnostics : public clang::DiagnosticConsumer {
 public:
  void BeginSourceFile(const clang::LangOptions&, const clang::Preprocessor*) override {
    begun_ = true;
  }

  void HandleDiagnostic(clang::DiagnosticsEngine::Level level,
                        const clang::Diagnostic& diagnostic) override {
    if (level < clang::DiagnosticsEngine::Warning) return;
    const bool is_error = level >= clang::DiagnosticsEngine::Error;
    unsigned& count = is_error ? errors_ : warnings_;
    if (++count > kMostOfAKind) return;
    llvm::SmallString<128> text;
    diagnostic.FormatDiagnostic(text);
    if (is_error && !begun_ && refusal_.empty()) refusal_ = text.str().str();
    json::Object described{
        {"severity", severity_name(level)},
        {"text", json_text(text)},
        {"file", nullptr},
        {"line", nullptr},
        {"column", nullptr},
    };
    if (diagnostic.hasSourceManager() && diagnostic.getLocation().isValid()) {
      const clang::SourceManager& sources = diagnostic.getSourceManager();
      add_place(described, diagnostic.getLocation(), sources);
      described["column"] = sources.getExpansionColumnNumber(diagnostic.getLocation());
    }
    list_.push_back(std::move(described));
  }

  void move_into(json::Object& run) {
    run["diagnostics"] = std::move(list_);
    run["error_count"] = errors_;
    run["warning_count"] = warnings_;
  }

  /// The error in the flags, or an empty string.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

 private:
  bool begun_ = false;
  unsigned errors_ = 0;
  unsigned warnings_ = 0;
  std::string refusal_;
  json::Array list_;
};

json::Object describe_data_model(const clang::ASTContext& context) {
  const clang::TargetInfo& target = context.getTargetInfo();
  const clang::QualType int64 = context.getIntTypeForBitwidth(64, /*Signed=*/true);
  return json::Object{
      {"pointer_size", byte_count(context.getTypeSizeInChars(context.VoidPtrTy))},
      {"int64_align", byte_count(context.getTypeAlignInChars(int64))},
      {"big_endian", target.isBigEndian()},
  };
}

class Action : public clang::ASTFrontendAction {
 public:
  explicit Action(std::optional<json::Object>& facts) : facts_(facts) {}

 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance&,
                                                        llvm::StringRef) override {
    return std::make_unique<clang::ASTConsumer>();
  }

  // Like clang::ParseAST(), but keeps the parser alive while the facts are collected, because it
  // evaluates the macros.
  void ExecuteAction() override {
    clang::CompilerInstance& compiler = getCompilerInstance();
    clang::Preprocessor& preprocessor = compiler.getPreprocessor();
    Preprocessing preprocessing;
    preprocessor.addPPCallbacks(
        record_preprocessing(preprocessor.getSourceManager(), preprocessing));
    compiler.createSema(getTranslationUnitKind(), /*CompletionConsumer=*/nullptr);
    clang::Sema& sema = compiler.getSema();
    // The facts are only in declarations.
    clang::Parser parser(preprocessor, sema, /*SkipFunctionBodies=*/true);
    preprocessor.EnterMainSourceFile();
    parser.Initialize();
    const clang::EnterExpressionEvaluationContext evaluated(
        sema, clang::Sema::ExpressionEvaluationContext::PotentiallyEvaluated);
    while (!parser.ParseTopLevelDecl()) {
    }
    // Clang drops the file's scope at its end. enableIncrementalProcessing() would keep it, but
    // changes the records of a header with errors.
    sema.TUScope = sema.getCurScope();
    // Diagnostics from here on are about macro bodies, not about the header.
    preprocessor.getDiagnostics().setSuppressAllDiagnostics(true);
    facts_.emplace();
    (*facts_)["data_model"] = describe_data_model(compiler.getASTContext());
    add_declarations(*facts_, compiler.getASTContext());
    add_macros(*facts_, preprocessing, parser);
  }

 private:
  std::optional<json::Object>& facts_;
};

std::vector<std::string> clang_command_line(const Input& input, const Run& run) {
  const bool is_c = run.language == "c";
  std::vector<std::string> line = {
      "fletching-extract",
      "-x",
      is_c ? "c-header" : "c++-header",
      input.file,
      is_c ? "-std=gnu17" : "-std=gnu++20",
      "--target=" + run.target,
      // No headers of this machine: they belong to another target, or another Clang.
      "-ffreestanding",
      "-nostdinc",
      "-idirafter",
      kClangFolder,
      "-idirafter",
      kStandInFolder,
      "-ferror-limit=0",
      "-Qunused-arguments",
      "-fsyntax-only",
  };
  line.insert(line.end(), input.flags.begin(), input.flags.end());
  return line;
}

}  // namespace

llvm::Expected<json::Object> extract_facts(const Input& input, const Run& run,
                                           clang::FileManager& files) {
  Diagnostics diagnostics;
  std::optional<json::Object> facts;
  clang::tooling::ToolInvocation invocation(clang_command_line(input, run),
                                            std::make_unique<Action>(facts), &files);
  invocation.setDiagnosticConsumer(&diagnostics);
  // Returns false for errors in the header, which are part of the facts.
  invocation.run();
  if (!facts || !diagnostics.refusal().empty()) {
    return llvm::createStringError("clang would not compile " + input.file + " as " + run.language +
                                   " for " + run.target + ": " + diagnostics.refusal());
  }
  (*facts)["language"] = run.language;
  (*facts)["target"] = run.target;
  diagnostics.move_into(*facts);
  return std::move(*facts);
}

}  // namespace fletching::extract
