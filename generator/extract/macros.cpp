#include "macros.hpp"

#include <memory>

#include "directives.hpp"
#include "evaluate.hpp"
#include "json.hpp"

namespace fletching::extract {
namespace {

namespace json = llvm::json;

Place place_of(clang::SourceLocation location, const clang::SourceManager& sources) {
  const auto [file, offset] = sources.getDecomposedExpansionLoc(location);
  return {sources.getFileEntryForID(file), offset};
}

class Recorder : public clang::PPCallbacks {
 public:
  Recorder(const clang::SourceManager& sources, Preprocessing& result)
      : sources_(sources), result_(result) {}

  void MacroDefined(const clang::Token& name, const clang::MacroDirective*) override {
    if (!in_user_file(name.getLocation(), sources_)) return;
    result_.definitions.push_back(
        {place_of(name.getLocation(), sources_), name.getIdentifierInfo()->getName().str()});
  }

  void MacroUndefined(const clang::Token& name, const clang::MacroDefinition&,
                      const clang::MacroDirective*) override {
    for (Preprocessing::Definition& definition : result_.definitions) {
      if (definition.name == name.getIdentifierInfo()->getName()) definition.undefined = true;
    }
  }

  void If(clang::SourceLocation keyword, clang::SourceRange, ConditionValueKind) override {
    add_conditional(keyword);
  }

  void Ifndef(clang::SourceLocation keyword, const clang::Token&,
              const clang::MacroDefinition&) override {
    add_conditional(keyword);
  }

 private:
  void add_conditional(clang::SourceLocation keyword) {
    if (in_user_file(keyword, sources_)) result_.conditionals.insert(place_of(keyword, sources_));
  }

  const clang::SourceManager& sources_;
  Preprocessing& result_;
};

// The directives of one file, which may be included several times.
struct ScannedFile {
  clang::FileID id;
  const clang::FileEntry* entry;
  Directives directives;
};

std::vector<ScannedFile> scan_user_files(const clang::SourceManager& sources,
                                         const clang::LangOptions& language) {
  std::vector<ScannedFile> files;
  std::set<const clang::FileEntry*> seen;
  for (unsigned i = 0; i < sources.local_sloc_entry_size(); ++i) {
    const clang::SrcMgr::SLocEntry& slot = sources.getLocalSLocEntry(i);
    if (!slot.isFile()) continue;
    const auto start = clang::SourceLocation::getFromRawEncoding(slot.getOffset());
    if (!in_user_file(start, sources)) continue;
    const clang::FileID id = sources.getFileID(start);
    const clang::FileEntry* entry = sources.getFileEntryForID(id);
    if (seen.insert(entry).second) {
      files.push_back({id, entry, scan_directives(id, sources, language)});
    }
  }
  return files;
}

json::Array json_texts(const std::vector<std::string>& texts) {
  json::Array array;
  for (const std::string& text : texts) array.push_back(json_text(text));
  return array;
}

class Describer {
 public:
  Describer(const Preprocessing& done, clang::Parser& parser)
      : parser_(parser), sources_(parser.getPreprocessor().getSourceManager()) {
    for (size_t i = 0; i < done.definitions.size(); ++i) last_[done.definitions[i].place] = i;
  }

  json::Object describe_macro(const ScannedFile& file, const Define& define, bool undefined) {
    const std::optional<llvm::APSInt> value = evaluate(define.body, parser_);
    json::Object macro{
        {"name", json_text(define.name)},
        {"value", value ? json_number(*value) : json::Value(nullptr)},
        {"text", json_text(define.text)},
        {"conditions", json_texts(define.conditions)},
        {"undefined", undefined},
    };
    add_place(macro, location_of(file, define.name_offset), sources_);
    return macro;
  }

  [[nodiscard]] json::Object describe_guard(const ScannedFile& file, const Guard& guard,
                                            const std::set<Place>& reached) const {
    json::Object described{
        {"macro", json_text(guard.macro)},
        {"end_line", sources_.getExpansionLineNumber(location_of(file, guard.end_offset))},
        {"taken", is_defined({file.entry, guard.define_offset})},
        {"reached", reached.contains({file.entry, guard.keyword_offset})},
        {"conditions", json_texts(guard.conditions)},
    };
    add_place(described, location_of(file, guard.keyword_offset), sources_);
    return described;
  }

  [[nodiscard]] bool is_defined(const Place& place) const { return last_.contains(place); }

  // Whether this is the only or last definition at the place.
  [[nodiscard]] bool is_last(const Place& place, size_t index) const {
    return last_.at(place) == index;
  }

 private:
  [[nodiscard]] clang::SourceLocation location_of(const ScannedFile& file, unsigned offset) const {
    return sources_.getLocForStartOfFile(file.id).getLocWithOffset(static_cast<int>(offset));
  }

  clang::Parser& parser_;
  const clang::SourceManager& sources_;
  std::map<Place, size_t> last_;  // index of the last definition at a place
};

}  // namespace

std::unique_ptr<clang::PPCallbacks> record_preprocessing(const clang::SourceManager& sources,
                                                         Preprocessing& result) {
  return std::make_unique<Recorder>(sources, result);
}

void add_macros(json::Object& run, const Preprocessing& done, clang::Parser& parser) {
  clang::Preprocessor& preprocessor = parser.getPreprocessor();
  const std::vector<ScannedFile> files =
      scan_user_files(preprocessor.getSourceManager(), preprocessor.getLangOpts());
  Describer describer(done, parser);
  // A macro may contain a _Pragma, which must not be executed.
  preprocessor.setPragmasEnabled(false);

  std::map<Place, std::pair<const ScannedFile*, const Define*>> written;
  json::Array guards;
  json::Array skipped;
  for (const ScannedFile& file : files) {
    for (const Guard& guard : file.directives.guards) {
      guards.push_back(describer.describe_guard(file, guard, done.conditionals));
    }
    for (const Define& define : file.directives.defines) {
      if (define.function_like) continue;
      const Place place{file.entry, define.name_offset};
      written[place] = {&file, &define};
      if (!describer.is_defined(place))
        skipped.push_back(describer.describe_macro(file, define, false));
    }
  }
  json::Array macros;
  for (size_t i = 0; i < done.definitions.size(); ++i) {
    const Preprocessing::Definition& definition = done.definitions[i];
    const auto found = written.find(definition.place);
    if (found == written.end() || !describer.is_last(definition.place, i)) continue;
    const auto [file, define] = found->second;
    macros.push_back(describer.describe_macro(*file, *define, definition.undefined));
  }
  run["guards"] = std::move(guards);
  run["macros"] = std::move(macros);
  run["skipped_macros"] = std::move(skipped);
}

}  // namespace fletching::extract
