#include "macros.hpp"

#include <memory>

#include "directives.hpp"
#include "evaluate.hpp"
#include "json.hpp"

namespace fletching::extract {
namespace {

namespace json = llvm::json;

Place PlaceOf(clang::SourceLocation location, const clang::SourceManager& sources) {
  const auto [file, offset] = sources.getDecomposedExpansionLoc(location);
  return {sources.getFileEntryForID(file), offset};
}

class Recorder : public clang::PPCallbacks {
 public:
  Recorder(const clang::SourceManager& sources, Preprocessing& result)
      : sources_(sources), result_(result) {}

  void MacroDefined(const clang::Token& name, const clang::MacroDirective*) override {
    if (!InUserFile(name.getLocation(), sources_)) return;
    result_.definitions.push_back(
        {PlaceOf(name.getLocation(), sources_), name.getIdentifierInfo()->getName().str()});
  }

  void MacroUndefined(const clang::Token& name, const clang::MacroDefinition&,
                      const clang::MacroDirective*) override {
    for (Preprocessing::Definition& definition : result_.definitions) {
      if (definition.name == name.getIdentifierInfo()->getName()) definition.undefined = true;
    }
  }

  void If(clang::SourceLocation keyword, clang::SourceRange, ConditionValueKind) override {
    AddConditional(keyword);
  }

  void Ifndef(clang::SourceLocation keyword, const clang::Token&,
              const clang::MacroDefinition&) override {
    AddConditional(keyword);
  }

 private:
  void AddConditional(clang::SourceLocation keyword) {
    if (InUserFile(keyword, sources_)) result_.conditionals.insert(PlaceOf(keyword, sources_));
  }

  const clang::SourceManager& sources_;
  Preprocessing& result_;
};

// The directives of one file, however often it was included.
struct ScannedFile {
  clang::FileID id;
  const clang::FileEntry* entry;
  Directives directives;
};

std::vector<ScannedFile> ScanUserFiles(const clang::SourceManager& sources,
                                       const clang::LangOptions& language) {
  std::vector<ScannedFile> files;
  std::set<const clang::FileEntry*> seen;
  for (unsigned i = 0; i < sources.local_sloc_entry_size(); ++i) {
    const clang::SrcMgr::SLocEntry& slot = sources.getLocalSLocEntry(i);
    if (!slot.isFile()) continue;
    const auto start = clang::SourceLocation::getFromRawEncoding(slot.getOffset());
    if (!InUserFile(start, sources)) continue;
    const clang::FileID id = sources.getFileID(start);
    const clang::FileEntry* entry = sources.getFileEntryForID(id);
    if (seen.insert(entry).second) {
      files.push_back({id, entry, ScanDirectives(id, sources, language)});
    }
  }
  return files;
}

json::Array Texts(const std::vector<std::string>& texts) {
  json::Array array;
  for (const std::string& text : texts) array.push_back(Text(text));
  return array;
}

class Describer {
 public:
  Describer(const Preprocessing& done, clang::Parser& parser)
      : parser_(parser), sources_(parser.getPreprocessor().getSourceManager()) {
    for (size_t i = 0; i < done.definitions.size(); ++i) last_[done.definitions[i].place] = i;
  }

  json::Object Macro(const ScannedFile& file, const Define& define, bool undefined) {
    const std::optional<llvm::APSInt> value = Evaluate(define.body, parser_);
    json::Object macro{
        {"name", Text(define.name)}, {"value", value ? Number(*value) : json::Value(nullptr)},
        {"text", Text(define.text)}, {"conditions", Texts(define.conditions)},
        {"undefined", undefined},
    };
    AddPlace(macro, Location(file, define.name_offset), sources_);
    return macro;
  }

  [[nodiscard]] json::Object DescribeGuard(const ScannedFile& file, const Guard& guard,
                                           const std::set<Place>& reached) const {
    json::Object described{
        {"macro", Text(guard.macro)},
        {"end_line", sources_.getExpansionLineNumber(Location(file, guard.end_offset))},
        {"taken", IsDefined({file.entry, guard.define_offset})},
        {"reached", reached.contains({file.entry, guard.keyword_offset})},
        {"conditions", Texts(guard.conditions)},
    };
    AddPlace(described, Location(file, guard.keyword_offset), sources_);
    return described;
  }

  [[nodiscard]] bool IsDefined(const Place& place) const { return last_.contains(place); }

  // Whether this is the place's only or last definition.
  [[nodiscard]] bool IsLast(const Place& place, size_t index) const {
    return last_.at(place) == index;
  }

 private:
  [[nodiscard]] clang::SourceLocation Location(const ScannedFile& file, unsigned offset) const {
    return sources_.getLocForStartOfFile(file.id).getLocWithOffset(static_cast<int>(offset));
  }

  clang::Parser& parser_;
  const clang::SourceManager& sources_;
  std::map<Place, size_t> last_;  // index of the last definition at a place
};

}  // namespace

std::unique_ptr<clang::PPCallbacks> RecordPreprocessing(const clang::SourceManager& sources,
                                                        Preprocessing& result) {
  return std::make_unique<Recorder>(sources, result);
}

void AddMacros(json::Object& run, const Preprocessing& done, clang::Parser& parser) {
  clang::Preprocessor& preprocessor = parser.getPreprocessor();
  const std::vector<ScannedFile> files =
      ScanUserFiles(preprocessor.getSourceManager(), preprocessor.getLangOpts());
  Describer describer(done, parser);
  // A macro may hold a _Pragma, which must not run now.
  preprocessor.setPragmasEnabled(false);

  std::map<Place, std::pair<const ScannedFile*, const Define*>> written;
  json::Array guards;
  json::Array skipped;
  for (const ScannedFile& file : files) {
    for (const Guard& guard : file.directives.guards) {
      guards.push_back(describer.DescribeGuard(file, guard, done.conditionals));
    }
    for (const Define& define : file.directives.defines) {
      if (define.function_like) continue;
      const Place place{file.entry, define.name_offset};
      written[place] = {&file, &define};
      if (!describer.IsDefined(place)) skipped.push_back(describer.Macro(file, define, false));
    }
  }
  json::Array macros;
  for (size_t i = 0; i < done.definitions.size(); ++i) {
    const Preprocessing::Definition& definition = done.definitions[i];
    const auto found = written.find(definition.place);
    if (found == written.end() || !describer.IsLast(definition.place, i)) continue;
    const auto [file, define] = found->second;
    macros.push_back(describer.Macro(*file, *define, definition.undefined));
  }
  run["guards"] = std::move(guards);
  run["macros"] = std::move(macros);
  run["skipped_macros"] = std::move(skipped);
}

}  // namespace fletching::extract
