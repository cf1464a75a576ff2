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

bool is_placeholder(llvm::StringRef component) {
  return component.empty() || component == "unknown" || component == "none";
}

// Accepts `linux` and `linux5.4`, but not `linuxx`, which clang accepts as `linux`.
bool is_version_of(llvm::StringRef component, llvm::StringRef name) {
  return component.consume_front(name) &&
         component.find_first_not_of("0123456789.") == llvm::StringRef::npos;
}

bool is_system(const Triple& triple) {
  const llvm::StringRef name = triple.getOSName();
  if (triple.getOS() != Triple::UnknownOS) {
    return is_version_of(name, Triple::getOSTypeName(triple.getOS())) ||
           is_version_of(name, "macos") || is_version_of(name, "win") ||
           is_version_of(name, "wasip");
  }
  return is_placeholder(name);
}

bool is_environment(const Triple& triple) {
  const llvm::StringRef name = triple.getEnvironmentName().split('-').first;
  if (triple.getEnvironment() != Triple::UnknownEnvironment) {
    return is_version_of(name, Triple::getEnvironmentTypeName(triple.getEnvironment()));
  }
  // Other values: an object format, or wasm's `threads`.
  return is_placeholder(name) || llvm::StringSwitch<bool>(name)
                                     .Cases("elf", "coff", "macho", "wasm", "xcoff", "goff", true)
                                     .Case("threads", true)
                                     .Default(false);
}

llvm::Error unknown_target(const std::string& triple, llvm::StringRef what,
                           llvm::StringRef component) {
  return llvm::createStringError("unknown target '" + triple + "': clang knows no " + what + " '" +
                                 component + "'");
}

bool clang_has_target(const Triple& triple) {
  clang::DiagnosticsEngine silent(new clang::DiagnosticIDs, new clang::DiagnosticOptions,
                                  new clang::IgnoringDiagConsumer);
  const auto options = std::make_shared<clang::TargetOptions>();
  options->Triple = triple.str();
  const std::unique_ptr<clang::TargetInfo> target(
      clang::TargetInfo::CreateTargetInfo(silent, options));
  return target != nullptr;
}

}  // namespace

llvm::Error check_triple(const std::string& triple) {
  const Triple parsed(Triple::normalize(triple));
  if (parsed.getArch() == Triple::UnknownArch) {
    return unknown_target(triple, "architecture", Triple(triple).getArchName());
  }
  if (!is_system(parsed)) return unknown_target(triple, "operating system", parsed.getOSName());
  // Clang parses a component that is neither vendor nor system as the vendor.
  if (parsed.getOS() == Triple::UnknownOS && parsed.getVendor() == Triple::UnknownVendor &&
      !is_placeholder(parsed.getVendorName())) {
    return unknown_target(triple, "operating system", parsed.getVendorName());
  }
  if (!is_environment(parsed))
    return unknown_target(triple, "environment", parsed.getEnvironmentName());
  if (!clang_has_target(parsed)) {
    return llvm::createStringError("unknown target '" + triple +
                                   "': clang cannot compile C for this combination");
  }
  return llvm::Error::success();
}

}  // namespace fletching::extract
