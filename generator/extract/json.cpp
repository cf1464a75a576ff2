#include "json.hpp"

namespace fletching::extract {

namespace json = llvm::json;

json::Value Text(llvm::StringRef text) {
  return json::isUTF8(text) ? text.str() : json::fixUTF8(text);
}

json::Value Number(const llvm::APSInt& value) {
  if (value.isRepresentableByInt64()) return value.getExtValue();
  if (value.isUnsigned() && value.getActiveBits() <= 64) return value.getZExtValue();
  return nullptr;
}

void AddPlace(json::Object& object, clang::SourceLocation location,
              const clang::SourceManager& sources) {
  const clang::SourceLocation seen = sources.getExpansionLoc(location);
  object["file"] = Text(sources.getFilename(seen));
  object["line"] = sources.getExpansionLineNumber(seen);
}

bool InUserFile(clang::SourceLocation location, const clang::SourceManager& sources) {
  if (location.isInvalid()) return false;
  const clang::SourceLocation seen = sources.getExpansionLoc(location);
  return sources.getFileEntryForID(sources.getFileID(seen)) != nullptr &&
         !sources.isInSystemHeader(seen);
}

}  // namespace fletching::extract
