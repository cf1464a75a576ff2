#include "types.hpp"

#include <utility>

#include "clang/AST/TypeLoc.h"
#include "json.hpp"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

namespace fletching::extract {
namespace {

namespace json = llvm::json;

// The typedefs of <stdint.h> say nothing but how wide they are, and what is underneath depends on
// the target.
bool IsStdintName(llvm::StringRef name) {
  static const llvm::StringSet<> names = {
      "int8_t",         "int16_t",       "int32_t",       "int64_t",        "uint8_t",
      "uint16_t",       "uint32_t",      "uint64_t",      "int_least8_t",   "int_least16_t",
      "int_least32_t",  "int_least64_t", "uint_least8_t", "uint_least16_t", "uint_least32_t",
      "uint_least64_t", "int_fast8_t",   "int_fast16_t",  "int_fast32_t",   "int_fast64_t",
      "uint_fast8_t",   "uint_fast16_t", "uint_fast32_t", "uint_fast64_t",  "intptr_t",
      "uintptr_t",      "intmax_t",      "uintmax_t"};
  return names.contains(name);
}

std::string SpellByWidth(clang::QualType integer, const clang::ASTContext& context) {
  return (integer->isSignedIntegerType() ? "int" : "uint") +
         std::to_string(context.getTypeSize(integer));
}

std::string SpellBuiltin(const clang::BuiltinType* builtin, const clang::ASTContext& context) {
  switch (builtin->getKind()) {
    case clang::BuiltinType::Bool:
      return "bool";
    case clang::BuiltinType::Char_S:
    case clang::BuiltinType::Char_U:
      return "char";
    case clang::BuiltinType::Int:
      return "int";
    case clang::BuiltinType::UInt:
      return "uint";
    default:
      if (builtin->isInteger()) return SpellByWidth(clang::QualType(builtin, 0), context);
      return builtin->getName(context.getPrintingPolicy()).str();
  }
}

std::string SpellTypedef(const clang::TypedefNameDecl* name, const clang::ASTContext& context) {
  if (IsStdintName(name->getName())) {
    return SpellByWidth(context.getTypeDeclType(name).getCanonicalType(), context);
  }
  const std::string spelled = QualifiedName(name);
  llvm::StringRef unqualified = spelled;
  unqualified.consume_front("std::");
  return unqualified.str();
}

std::string SpellTag(const clang::TagDecl* tag) {
  const std::string name = TagName(tag);
  return name.empty() ? "(anonymous)" : name;
}

// A calling convention of its own, such as `stdcall`; empty for the one that the target's C
// compiler uses.
std::string CallingConvention(const clang::FunctionType* function,
                              const clang::ASTContext& context) {
  const auto* prototype = llvm::dyn_cast<clang::FunctionProtoType>(function);
  const bool variadic = prototype != nullptr && prototype->isVariadic();
  if (function->getCallConv() == context.getDefaultCallingConvention(variadic, false)) return "";
  return clang::FunctionType::getNameForCallConv(function->getCallConv()).str();
}

// `(ArrowArray*, ...) -> int`
std::string SpellSignature(const clang::FunctionType* function, const clang::ASTContext& context) {
  std::string arguments;
  llvm::ListSeparator separator;
  if (const auto* prototype = llvm::dyn_cast<clang::FunctionProtoType>(function)) {
    for (const clang::QualType argument : prototype->param_types()) {
      arguments += llvm::StringRef(separator);
      arguments += SpellType(argument, context);
    }
    if (prototype->isVariadic()) {
      arguments += llvm::StringRef(separator);
      arguments += "...";
    }
  }
  return llvm::formatv("({0}) -> {1}", arguments, SpellType(function->getReturnType(), context));
}

std::string SpellFunction(llvm::StringRef word, const clang::FunctionType* function,
                          const clang::ASTContext& context) {
  std::string convention = CallingConvention(function, context);
  if (!convention.empty()) convention += ' ';
  return convention + word.str() + SpellSignature(function, context);
}

// `inner` ready for a suffix: `(int64[3])*`, but `void**`.
std::string Enclosed(const std::string& inner, clang::QualType type) {
  const bool ambiguous = type->isArrayType() || type->isFunctionPointerType();
  return ambiguous ? llvm::formatv("({0})", inner).str() : inner;
}

std::string SpellArray(clang::QualType type, const clang::ASTContext& context) {
  std::string counts;
  while (const clang::ArrayType* array = context.getAsArrayType(type)) {
    const auto* constant = llvm::dyn_cast<clang::ConstantArrayType>(array);
    counts += constant != nullptr ? llvm::formatv("[{0}]", constant->getZExtSize()).str() : "[]";
    type = array->getElementType();
  }
  return Enclosed(SpellType(type, context), type) + counts;
}

std::string SpellUnqualified(const clang::Type* type, const clang::ASTContext& context) {
  if (const auto* builtin = llvm::dyn_cast<clang::BuiltinType>(type)) {
    return SpellBuiltin(builtin, context);
  }
  if (const auto* tag = llvm::dyn_cast<clang::TagType>(type)) return SpellTag(tag->getDecl());
  if (const auto* function = llvm::dyn_cast<clang::FunctionType>(type)) {
    return SpellFunction("function", function, context);
  }
  if (const auto* pointer = llvm::dyn_cast<clang::PointerType>(type)) {
    const clang::QualType pointee = pointer->getPointeeType();
    if (const auto* function = pointee->getAs<clang::FunctionType>()) {
      return SpellFunction("callback", function, context);
    }
    return Enclosed(SpellType(pointee, context), pointee) + "*";
  }
  if (const auto* reference = llvm::dyn_cast<clang::ReferenceType>(type)) {
    const clang::QualType pointee = reference->getPointeeTypeAsWritten();
    return Enclosed(SpellType(pointee, context), pointee) +
           (reference->isRValueReferenceType() ? "&&" : "&");
  }
  if (const auto* atomic = llvm::dyn_cast<clang::AtomicType>(type)) {
    return "_Atomic(" + SpellType(atomic->getValueType(), context) + ")";
  }
  return clang::QualType(type, 0).getCanonicalType().getAsString(context.getPrintingPolicy());
}

// `const char`, but `void* const`. `restrict` does not change what a binding has to do.
std::string Qualify(clang::Qualifiers qualifiers, const clang::Type* type, std::string spelled) {
  std::string words;
  if (qualifiers.hasConst()) words += "const ";
  if (qualifiers.hasVolatile()) words += "volatile ";
  if (words.empty()) return spelled;
  if (!type->isPointerType() || type->isFunctionPointerType()) return words + spelled;
  return spelled + " " + llvm::StringRef(words).rtrim().str();
}

// The names of the parameters are part of how the type was written, not of the type.
clang::FunctionProtoTypeLoc WrittenPrototype(clang::TypeLoc written) {
  while (!written.isNull()) {
    written = written.getUnqualifiedLoc();
    if (const auto prototype = written.getAs<clang::FunctionProtoTypeLoc>()) return prototype;
    if (const auto named = written.getAs<clang::TypedefTypeLoc>()) {
      written = named.getTypedefNameDecl()->getTypeSourceInfo()->getTypeLoc();
    } else {
      written = written.getNextTypeLoc();
    }
  }
  return {};
}

json::Array DescribeArguments(const clang::FieldDecl* field,
                              const clang::FunctionProtoType* prototype,
                              const clang::ASTContext& context) {
  clang::FunctionProtoTypeLoc written;
  if (const clang::TypeSourceInfo* source = field->getTypeSourceInfo()) {
    written = WrittenPrototype(source->getTypeLoc());
  }
  json::Array arguments;
  for (unsigned i = 0; i < prototype->getNumParams(); ++i) {
    const clang::ParmVarDecl* named =
        !written.isNull() && i < written.getNumParams() ? written.getParam(i) : nullptr;
    arguments.push_back(json::Object{
        {"name", Text(named != nullptr ? named->getName() : "")},
        {"type", Text(SpellType(prototype->getParamType(i), context))},
    });
  }
  return arguments;
}

}  // namespace

std::string SpellType(clang::QualType type, const clang::ASTContext& context) {
  // One step of sugar at a time, so that a typedef's name is seen before what it stands for.
  clang::Qualifiers qualifiers;
  while (true) {
    const clang::SplitQualType split = type.split();
    qualifiers.addConsistentQualifiers(split.Quals);
    const auto* named = llvm::dyn_cast<clang::TypedefType>(split.Ty);
    const auto* builtin = llvm::dyn_cast<clang::BuiltinType>(type.getCanonicalType().getTypePtr());
    if (named != nullptr && builtin != nullptr && builtin->isInteger()) {
      return Qualify(qualifiers, split.Ty, SpellTypedef(named->getDecl(), context));
    }
    const clang::QualType next = split.Ty->getLocallyUnqualifiedSingleStepDesugaredType();
    if (next.getTypePtr() == split.Ty) {
      type = clang::QualType(split.Ty, 0);
      break;
    }
    type = next;
  }
  // The qualifiers of an array are those of its elements.
  if (type->isArrayType()) return SpellArray(context.getQualifiedType(type, qualifiers), context);
  return Qualify(qualifiers, type.getTypePtr(), SpellUnqualified(type.getTypePtr(), context));
}

std::string QualifiedName(const clang::NamedDecl* named) {
  clang::PrintingPolicy policy = named->getASTContext().getPrintingPolicy();
  policy.AnonymousTagLocations = false;
  std::string name;
  llvm::raw_string_ostream stream(name);
  named->getNameForDiagnostic(stream, policy, /*Qualified=*/true);
  return name;
}

std::string TagName(const clang::TagDecl* tag) {
  if (tag->getIdentifier() != nullptr) return QualifiedName(tag);
  const clang::TypedefNameDecl* name = tag->getTypedefNameForAnonDecl();
  return name != nullptr ? QualifiedName(name) : "";
}

json::Value DescribeCallback(const clang::FieldDecl* field, const clang::ASTContext& context) {
  if (!field->getType()->isFunctionPointerType()) return nullptr;
  const auto* function = field->getType()->getPointeeType()->castAs<clang::FunctionType>();
  const auto* prototype = llvm::dyn_cast<clang::FunctionProtoType>(function);
  const std::string convention = CallingConvention(function, context);
  return json::Object{
      {"returns", Text(SpellType(function->getReturnType(), context))},
      {"arguments",
       prototype != nullptr ? DescribeArguments(field, prototype, context) : json::Array()},
      {"variadic", prototype != nullptr && prototype->isVariadic()},
      {"prototype", prototype != nullptr},
      {"convention", convention.empty() ? json::Value(nullptr) : json::Value(convention)},
  };
}

}  // namespace fletching::extract
