// Small pieces that every part of the JSON is made from.
#ifndef FLETCHING_EXTRACT_JSON_HPP
#define FLETCHING_EXTRACT_JSON_HPP

#include <string>

#include "clang/AST/CharUnits.h"
#include "clang/Basic/SourceLocation.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/Support/JSON.h"

namespace fletching::extract {

/// Foreign text as JSON: bytes that are not UTF-8 become U+FFFD.
llvm::json::Value json_text(llvm::StringRef text);

/// An integer of up to 64 bits as JSON; null when it is wider and does not fit.
llvm::json::Value json_number(const llvm::APSInt& value);

/// A size, an alignment or an offset in bytes.
inline int64_t byte_count(clang::CharUnits units) { return units.getQuantity(); }

/// Adds "file" and "line": the position of the text that the user sees, so never inside a macro.
void add_place(llvm::json::Object& object, clang::SourceLocation location,
               const clang::SourceManager& sources);

/// Whether a place is in a file that the run is about: no system header, no predefined text.
bool in_user_file(clang::SourceLocation location, const clang::SourceManager& sources);

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_JSON_HPP
