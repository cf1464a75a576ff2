// Helpers for the JSON output.
#ifndef FLETCHING_EXTRACT_JSON_HPP
#define FLETCHING_EXTRACT_JSON_HPP

#include <string>

#include "clang/AST/CharUnits.h"
#include "clang/Basic/SourceLocation.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/Support/JSON.h"

namespace fletching::extract {

/// Foreign text as JSON: invalid UTF-8 bytes become U+FFFD.
llvm::json::Value json_text(llvm::StringRef text);

/// An integer of up to 64 bits as JSON; null if it does not fit.
llvm::json::Value json_number(const llvm::APSInt& value);

/// A size, an alignment or an offset in bytes.
inline int64_t byte_count(clang::CharUnits units) { return units.getQuantity(); }

/// Adds "file" and "line" of the position in the source text, outside of any macro.
void add_place(llvm::json::Object& object, clang::SourceLocation location,
               const clang::SourceManager& sources);

/// Whether a location is in a user file: not in a system header or predefined text.
bool in_user_file(clang::SourceLocation location, const clang::SourceManager& sources);

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_JSON_HPP
