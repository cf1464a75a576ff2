#include "targets.hpp"

#include <memory>

#include "clang/Basic/Diagnostic.h"
#include "clang/Basic/DiagnosticIDs.h"
#include "clang/Basic/DiagnosticOptions.h"
#include "clang/Basic/TargetInfo.h"
#include "clang/Basic/TargetOptions.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/TargetParser/Triple.h"

namespace fletching::extract {
namespace {

using llvm::Triple;

bool IsPlaceholder(llvm::StringRef component) {
  return component.empty() || component == "unknown" || component == "none";
}

// `linux`, `linux5.4`, but not `linuxx`, which clang takes for `linux` too.
bool IsVersionOf(llvm::StringRef component, llvm::StringRef name) {
  return component.consume_front(name) &&
         component.find_first_not_of("0123456789.") == llvm::StringRef::npos;
}

bool IsSystem(const Triple& triple) {
  const llvm::StringRef name = triple.getOSName();
  if (triple.getOS() != Triple::UnknownOS) {
    return IsVersionOf(name, Triple::getOSTypeName(triple.getOS())) || IsVersionOf(name, "macos") ||
           IsVersionOf(name, "win") || IsVersionOf(name, "wasip");
  }
  return IsPlaceholder(name);
}

bool IsEnvironment(const Triple& triple) {
  const llvm::StringRef name = triple.getEnvironmentName().split('-').first;
  if (triple.getEnvironment() != Triple::UnknownEnvironment) {
    return IsVersionOf(name, Triple::getEnvironmentTypeName(triple.getEnvironment()));
  }
  // What else stands there: an object format, or wasm's `threads`.
  return IsPlaceholder(name) || llvm::StringSwitch<bool>(name)
                                    .Cases("elf", "coff", "macho", "wasm", "xcoff", "goff", true)
                                    .Case("threads", true)
                                    .Default(false);
}

llvm::Error Bad(const std::string& triple, llvm::StringRef what, llvm::StringRef component) {
  return llvm::createStringError("unknown target '" + triple + "': clang knows no " + what + " '" +
                                 component + "'");
}

bool ClangHasTarget(const Triple& triple) {
  clang::DiagnosticsEngine silent(new clang::DiagnosticIDs, new clang::DiagnosticOptions,
                                  new clang::IgnoringDiagConsumer);
  const auto options = std::make_shared<clang::TargetOptions>();
  options->Triple = triple.str();
  const std::unique_ptr<clang::TargetInfo> target(
      clang::TargetInfo::CreateTargetInfo(silent, options));
  return target != nullptr;
}

}  // namespace

llvm::Error CheckTriple(const std::string& triple) {
  const Triple parsed(Triple::normalize(triple));
  if (parsed.getArch() == Triple::UnknownArch) {
    return Bad(triple, "architecture", Triple(triple).getArchName());
  }
  if (!IsSystem(parsed)) return Bad(triple, "operating system", parsed.getOSName());
  // A component that is neither vendor nor system ends up as the vendor.
  if (parsed.getOS() == Triple::UnknownOS && parsed.getVendor() == Triple::UnknownVendor &&
      !IsPlaceholder(parsed.getVendorName())) {
    return Bad(triple, "operating system", parsed.getVendorName());
  }
  if (!IsEnvironment(parsed)) return Bad(triple, "environment", parsed.getEnvironmentName());
  if (!ClangHasTarget(parsed)) {
    return llvm::createStringError("unknown target '" + triple +
                                   "': clang cannot compile C for this combination");
  }
  return llvm::Error::success();
}

}  // namespace fletching::extract
