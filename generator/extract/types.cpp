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

// The typedefs of <stdint.h> are kept because their underlying types depend on the target.
bool is_stdint_name(llvm::StringRef name) {
  static const llvm::StringSet<> names = {
      "int8_t",         "int16_t",       "int32_t",       "int64_t",        "uint8_t",
      "uint16_t",       "uint32_t",      "uint64_t",      "int_least8_t",   "int_least16_t",
      "int_least32_t",  "int_least64_t", "uint_least8_t", "uint_least16_t", "uint_least32_t",
      "uint_least64_t", "int_fast8_t",   "int_fast16_t",  "int_fast32_t",   "int_fast64_t",
      "uint_fast8_t",   "uint_fast16_t", "uint_fast32_t", "uint_fast64_t",  "intptr_t",
      "uintptr_t",      "intmax_t",      "uintmax_t"};
  return names.contains(name);
}

std::string spell_by_width(clang::QualType integer, const clang::ASTContext& context) {
  return (integer->isSignedIntegerType() ? "int" : "uint") +
         std::to_string(context.getTypeSize(integer));
}

std::string spell_builtin(const clang::BuiltinType* builtin, const clang::ASTContext& context) {
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
      if (builtin->isInteger()) return spell_by_width(clang::QualType(builtin, 0), context);
      return builtin->getName(context.getPrintingPolicy()).str();
  }
}

std::string spell_typedef(const clang::TypedefNameDecl* name, const clang::ASTContext& context) {
  if (is_stdint_name(name->getName())) {
    return spell_by_width(context.getTypeDeclType(name).getCanonicalType(), context);
  }
  const std::string spelled = qualified_name(name);
  llvm::StringRef unqualified = spelled;
  unqualified.consume_front("std::");
  return unqualified.str();
}

std::string spell_tag(const clang::TagDecl* tag) {
  const std::string name = tag_name(tag);
  return name.empty() ? "(anonymous)" : name;
}

// A calling convention such as `stdcall`; empty for the default of the target's C compiler.
std::string calling_convention(const clang::FunctionType* function,
                               const clang::ASTContext& context) {
  const auto* prototype = llvm::dyn_cast<clang::FunctionProtoType>(function);
  const bool variadic = prototype != nullptr && prototype->isVariadic();
  if (function->getCallConv() == context.getDefaultCallingConvention(variadic, false)) return "";
  return clang::FunctionType::getNameForCallConv(function->getCallConv()).str();
}

// For example `(ArrowArray*, ...) -> int`.
std::string spell_signature(const clang::FunctionType* function, const clang::ASTContext& context) {
  std::string arguments;
  llvm::ListSeparator separator;
  if (const auto* prototype = llvm::dyn_cast<clang::FunctionProtoType>(function)) {
    for (const clang::QualType argument : prototype->param_types()) {
      arguments += llvm::StringRef(separator);
      arguments += spell_type(argument, context);
    }
    if (prototype->isVariadic()) {
      arguments += llvm::StringRef(separator);
      arguments += "...";
    }
  }
  return llvm::formatv("({0}) -> {1}", arguments, spell_type(function->getReturnType(), context));
}

std::string spell_function(llvm::StringRef word, const clang::FunctionType* function,
                           const clang::ASTContext& context) {
  std::string convention = calling_convention(function, context);
  if (!convention.empty()) convention += ' ';
  return convention + word.str() + spell_signature(function, context);
}

// Prepares `inner` for a suffix: `(int64[3])*`, but `void**`.
std::string enclose(const std::string& inner, clang::QualType type) {
  const bool ambiguous = type->isArrayType() || type->isFunctionPointerType();
  return ambiguous ? llvm::formatv("({0})", inner).str() : inner;
}

std::string spell_array(clang::QualType type, const clang::ASTContext& context) {
  std::string counts;
  while (const clang::ArrayType* array = context.getAsArrayType(type)) {
    const auto* constant = llvm::dyn_cast<clang::ConstantArrayType>(array);
    counts += constant != nullptr ? llvm::formatv("[{0}]", constant->getZExtSize()).str() : "[]";
    type = array->getElementType();
  }
  return enclose(spell_type(type, context), type) + counts;
}

std::string spell_unqualified(const clang::Type* type, const clang::ASTContext& context) {
  if (const auto* builtin = llvm::dyn_cast<clang::BuiltinType>(type)) {
    return spell_builtin(builtin, context);
  }
  if (const auto* tag = llvm::dyn_cast<clang::TagType>(type)) return spell_tag(tag->getDecl());
  if (const auto* function = llvm::dyn_cast<clang::FunctionType>(type)) {
    return spell_function("function", function, context);
  }
  if (const auto* pointer = llvm::dyn_cast<clang::PointerType>(type)) {
    const clang::QualType pointee = pointer->getPointeeType();
    if (const auto* function = pointee->getAs<clang::FunctionType>()) {
      return spell_function("callback", function, context);
    }
    return enclose(spell_type(pointee, context), pointee) + "*";
  }
  if (const auto* reference = llvm::dyn_cast<clang::ReferenceType>(type)) {
    const clang::QualType pointee = reference->getPointeeTypeAsWritten();
    return enclose(spell_type(pointee, context), pointee) +
           (reference->isRValueReferenceType() ? "&&" : "&");
  }
  if (const auto* atomic = llvm::dyn_cast<clang::AtomicType>(type)) {
    return "_Atomic(" + spell_type(atomic->getValueType(), context) + ")";
  }
  return clang::QualType(type, 0).getCanonicalType().getAsString(context.getPrintingPolicy());
}

// `const char`, but `void* const`. `restrict` does not affect bindings.
std::string qualify(clang::Qualifiers qualifiers, const clang::Type* type, std::string spelled) {
  std::string words;
  if (qualifiers.hasConst()) words += "const ";
  if (qualifiers.hasVolatile()) words += "volatile ";
  if (words.empty()) return spelled;
  if (!type->isPointerType() || type->isFunctionPointerType()) return words + spelled;
  return spelled + " " + llvm::StringRef(words).rtrim().str();
}

// Parameter names are available only in the written form of a type.
clang::FunctionProtoTypeLoc written_prototype(clang::TypeLoc written) {
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

json::Array describe_arguments(const clang::FieldDecl* field,
                               const clang::FunctionProtoType* prototype,
                               const clang::ASTContext& context) {
  clang::FunctionProtoTypeLoc written;
  if (const clang::TypeSourceInfo* source = field->getTypeSourceInfo()) {
    written = written_prototype(source->getTypeLoc());
  }
  json::Array arguments;
  for (unsigned i = 0; i < prototype->getNumParams(); ++i) {
    const clang::ParmVarDecl* named =
        !written.isNull() && i < written.getNumParams() ? written.getParam(i) : nullptr;
    arguments.push_back(json::Object{
        {"name", json_text(named != nullptr ? named->getName() : "")},
        {"type", json_text(spell_type(prototype->getParamType(i), context))},
    });
  }
  return arguments;
}

}  // namespace

std::string spell_type(clang::QualType type, const clang::ASTContext& context) {
  // Removes sugar step by step, so that a typedef's name is seen before its type.
  clang::Qualifiers qualifiers;
  while (true) {
    const clang::SplitQualType split = type.split();
    qualifiers.addConsistentQualifiers(split.Quals);
    const auto* named = llvm::dyn_cast<clang::TypedefType>(split.Ty);
    const auto* builtin = llvm::dyn_cast<clang::BuiltinType>(type.getCanonicalType().getTypePtr());
    if (named != nullptr && builtin != nullptr && builtin->isInteger()) {
      return qualify(qualifiers, split.Ty, spell_typedef(named->getDecl(), context));
    }
    const clang::QualType next = split.Ty->getLocallyUnqualifiedSingleStepDesugaredType();
    if (next.getTypePtr() == split.Ty) {
      type = clang::QualType(split.Ty, 0);
      break;
    }
    type = next;
  }
  // An array's qualifiers belong to its elements.
  if (type->isArrayType()) return spell_array(context.getQualifiedType(type, qualifiers), context);
  return qualify(qualifiers, type.getTypePtr(), spell_unqualified(type.getTypePtr(), context));
}

std::string qualified_name(const clang::NamedDecl* named) {
  clang::PrintingPolicy policy = named->getASTContext().getPrintingPolicy();
  policy.AnonymousTagLocations = false;
  std::string name;
  llvm::raw_string_ostream stream(name);
  named->getNameForDiagnostic(stream, policy, /*Qualified=*/true);
  return name;
}

std::string tag_name(const clang::TagDecl* tag) {
  if (tag->getIdentifier() != nullptr) return qualified_name(tag);
  const clang::TypedefNameDecl* name = tag->getTypedefNameForAnonDecl();
  return name != nullptr ? qualified_name(name) : "";
}

json::Value describe_callback(const clang::FieldDecl* field, const clang::ASTContext& context) {
  if (!field->getType()->isFunctionPointerType()) return nullptr;
  const auto* function = field->getType()->getPointeeType()->castAs<clang::FunctionType>();
  const auto* prototype = llvm::dyn_cast<clang::FunctionProtoType>(function);
  const std::string convention = calling_convention(function, context);
  return json::Object{
      {"returns", json_text(spell_type(function->getReturnType(), context))},
      {"arguments",
       prototype != nullptr ? describe_arguments(field, prototype, context) : json::Array()},
      {"variadic", prototype != nullptr && prototype->isVariadic()},
      {"prototype", prototype != nullptr},
      {"convention", convention.empty() ? json::Value(nullptr) : json::Value(convention)},
  };
}

}  // namespace fletching::extract
