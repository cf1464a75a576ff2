#include "declarations.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "clang/AST/Attr.h"
#include "clang/AST/Decl.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/RecordLayout.h"
#include "clang/Lex/Lexer.h"
#include "json.hpp"
#include "types.hpp"

namespace fletching::extract {
namespace {

namespace json = llvm::json;

// Templates have no layout, nor has what clang could not make sense of.
bool HasLayout(const clang::RecordDecl* record) {
  return record->isCompleteDefinition() && !record->isInvalidDecl() && !record->isDependentType() &&
         std::none_of(record->field_begin(), record->field_end(),
                      [](const clang::FieldDecl* field) { return field->isInvalidDecl(); });
}

bool HasSize(clang::QualType type) {
  if (type->isIncompleteType() || type->isFunctionType() || type->isDependentType()) return false;
  const clang::RecordDecl* record = type->getAsRecordDecl();
  return record == nullptr || HasLayout(record);
}

class Declarations {
 public:
  explicit Declarations(const clang::ASTContext& context)
      : context_(context), sources_(context.getSourceManager()) {}

  void Walk(const clang::DeclContext* scope) {
    for (const clang::Decl* decl : scope->decls()) {
      if (const auto* record = llvm::dyn_cast<clang::RecordDecl>(decl)) {
        AddRecord(record);
      } else if (const auto* enumeration = llvm::dyn_cast<clang::EnumDecl>(decl)) {
        AddEnum(enumeration);
      } else if (const auto* name = llvm::dyn_cast<clang::TypedefNameDecl>(decl)) {
        AddTypedef(name);
      } else if (llvm::isa<clang::LinkageSpecDecl, clang::NamespaceDecl>(decl)) {
        Walk(llvm::cast<clang::DeclContext>(decl));
      }
    }
  }

  void MoveInto(json::Object& run) {
    run["enums"] = std::move(enums_);
    run["typedefs"] = std::move(typedefs_);
    run["records"] = std::move(records_);
  }

 private:
  // Once for each entity, however often it is declared.
  bool IsNew(const clang::Decl* decl) {
    return !decl->isImplicit() && InUserFile(decl->getLocation(), sources_) &&
           seen_.insert(decl->getCanonicalDecl()).second;
  }

  void AddEnum(const clang::EnumDecl* declared) {
    const clang::EnumDecl* defined = declared->getDefinition();
    if (defined != declared || defined->isInvalidDecl() || !IsNew(defined)) return;
    const clang::QualType underlying = defined->getIntegerType().getCanonicalType();
    if (underlying.isNull() || underlying->isDependentType()) return;
    json::Array enumerators;
    for (const clang::EnumConstantDecl* enumerator : defined->enumerators()) {
      enumerators.push_back(DescribeEnumerator(enumerator));
    }
    json::Object described{
        {"name", Text(TagName(defined))},
        {"underlying", Text(underlying.getAsString(context_.getPrintingPolicy()))},
        {"size", Bytes(context_.getTypeSizeInChars(underlying))},
        {"signed", underlying->isSignedIntegerType()},
        {"fixed", defined->isFixed()},
        {"scoped", defined->isScoped()},
        {"enumerators", std::move(enumerators)},
    };
    AddPlace(described, defined->getLocation(), sources_);
    enums_.push_back(std::move(described));
  }

  json::Object DescribeEnumerator(const clang::EnumConstantDecl* enumerator) const {
    json::Value spelled = nullptr;
    if (const clang::Expr* value = enumerator->getInitExpr()) {
      const auto range = clang::CharSourceRange::getTokenRange(value->getSourceRange());
      spelled = Text(clang::Lexer::getSourceText(sources_.getExpansionRange(range), sources_,
                                                 context_.getLangOpts()));
    }
    return json::Object{
        {"name", Text(enumerator->getName())},
        {"value", Number(enumerator->getInitVal())},
        {"line", sources_.getExpansionLineNumber(enumerator->getLocation())},
        {"spelled", std::move(spelled)},
    };
  }

  void AddTypedef(const clang::TypedefNameDecl* name) {
    if (name->isInvalidDecl() || !IsNew(name)) return;
    const clang::QualType type = name->getUnderlyingType();
    if (type->isDependentType()) return;
    json::Object described{
        {"name", Text(QualifiedName(name))},
        {"type", Text(SpellType(type, context_))},
        {"size", nullptr},
        {"align", nullptr},
        {"signed", nullptr},
        {"is_enum", type->isEnumeralType()},
    };
    if (HasSize(type)) {
      described["size"] = Bytes(context_.getTypeSizeInChars(type));
      described["align"] = Bytes(context_.getTypeAlignInChars(type));
      if (type->isIntegralOrEnumerationType()) {
        described["signed"] = type->isSignedIntegerOrEnumerationType();
      }
    }
    AddPlace(described, name->getLocation(), sources_);
    typedefs_.push_back(std::move(described));
  }

  void AddRecord(const clang::RecordDecl* declared) {
    const clang::RecordDecl* defined = declared->getDefinition();
    if (defined != nullptr && defined != declared) return;
    if (declared->isDependentType() || !IsNew(declared)) return;
    const bool has_layout = HasLayout(declared);
    // What clang leaves of a second definition of the same name.
    if (declared->isInvalidDecl() && TagName(declared).empty()) return;
    json::Object described{
        {"name", Text(TagName(declared))},
        {"kind", declared->getKindName().str()},
        {"complete", defined != nullptr},
        {"valid", defined == nullptr || has_layout},
        {"packed", has_layout && IsPacked(declared)},
        {"size", nullptr},
        {"align", nullptr},
        {"fields", json::Array()},
    };
    if (has_layout) {
      const clang::ASTRecordLayout& layout = context_.getASTRecordLayout(declared);
      described["size"] = Bytes(layout.getSize());
      described["align"] = Bytes(layout.getAlignment());
    }
    json::Array fields;
    for (const clang::FieldDecl* field : declared->fields()) {
      fields.push_back(DescribeField(field, has_layout));
    }
    described["fields"] = std::move(fields);
    AddPlace(described, declared->getLocation(), sources_);
    records_.push_back(std::move(described));
    Walk(declared);
  }

  // Whether an attribute or a pragma puts a field closer than its type asks for.
  bool IsPacked(const clang::RecordDecl* record) const {
    if (record->hasAttr<clang::PackedAttr>()) return true;
    return std::any_of(record->field_begin(), record->field_end(),
                       [this](const clang::FieldDecl* field) {
                         return FieldAlign(field) < context_.getTypeAlign(field->getType());
                       });
  }

  // In bits: what the type, the packing and `alignas` make of it together.
  unsigned FieldAlign(const clang::FieldDecl* field) const {
    const clang::RecordDecl* record = field->getParent();
    const bool packed = field->hasAttr<clang::PackedAttr>() || record->hasAttr<clang::PackedAttr>();
    unsigned align = packed ? 8 : context_.getTypeAlign(field->getType());
    align = std::max(align, field->getMaxAlignment());
    if (const auto* limit = record->getAttr<clang::MaxFieldAlignmentAttr>()) {
      align = std::min(align, limit->getAlignment());
    }
    return align;
  }

  // The type as the language spells it, without the places of unnamed types.
  std::string WrittenType(const clang::FieldDecl* field) const {
    clang::PrintingPolicy policy = context_.getPrintingPolicy();
    policy.AnonymousTagLocations = false;
    return field->getType().getAsString(policy);
  }

  json::Object DescribeField(const clang::FieldDecl* field, bool has_layout) const {
    json::Object described{
        {"name", Text(field->getName())},
        {"type", Text(WrittenType(field))},
        {"canonical", Text(SpellType(field->getType(), context_))},
        {"line", sources_.getExpansionLineNumber(field->getLocation())},
        {"callback", DescribeCallback(field, context_)},
        {"offset", nullptr},
        {"bits", nullptr},
        {"size", nullptr},
        {"align", nullptr},
    };
    if (!has_layout) return described;
    const uint64_t bits = context_.getFieldOffset(field);
    described["offset"] = context_.toCharUnitsFromBits(static_cast<int64_t>(bits)).getQuantity();
    described["size"] = Bytes(context_.getTypeSizeInChars(field->getType()));
    described["align"] = Bytes(context_.toCharUnitsFromBits(FieldAlign(field)));
    if (field->isBitField()) {
      described["bits"] =
          json::Object{{"offset", bits}, {"width", field->getBitWidthValue(context_)}};
    }
    return described;
  }

  const clang::ASTContext& context_;
  const clang::SourceManager& sources_;
  std::set<const clang::Decl*> seen_;
  json::Array enums_;
  json::Array typedefs_;
  json::Array records_;
};

}  // namespace

void AddDeclarations(json::Object& run, const clang::ASTContext& context) {
  Declarations declarations(context);
  declarations.Walk(context.getTranslationUnitDecl());
  declarations.MoveInto(run);
}

}  // namespace fletching::extract
