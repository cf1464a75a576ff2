#include "json.hpp"

namespace fletching::extract {

namespace json = llvm::json;

json::Value json_text(llvm::StringRef text) {
  return json::isUTF8(text) ? text.str() : json::fixUTF8(text);
}

json::Value json_number(const llvm::APSInt& value) {
  if (value.isRepresentableByInt64()) return value.getExtValue();
  if (value.isUnsigned() && value.getActiveBits() <= 64) return value.getZExtValue();
  return nullptr;
}

void add_place(json::Object& object, clang::SourceLocation location,
               const clang::SourceManager& sources) {
  const clang::SourceLocation seen = sources.getExpansionLoc(location);
  object["file"] = json_text(sources.getFilename(seen));
  object["line"] = sources.getExpansionLineNumber(seen);
}

bool in_user_file(clang::SourceLocation location, const clang::SourceManager& sources) {
  if (location.isInvalid()) return false;
  const clang::SourceLocation seen = sources.getExpansionLoc(location);
  return sources.getFileEntryForID(sources.getFileID(seen)) != nullptr &&
         !sources.isInSystemHeader(seen);
}

}  // namespace fletching::extract
