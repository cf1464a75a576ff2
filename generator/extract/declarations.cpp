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

// Templates have no layout, and neither have invalid records.
bool has_layout(const clang::RecordDecl* record) {
  return record->isCompleteDefinition() && !record->isInvalidDecl() && !record->isDependentType() &&
         std::none_of(record->field_begin(), record->field_end(),
                      [](const clang::FieldDecl* field) { return field->isInvalidDecl(); });
}

bool has_size(clang::QualType type) {
  if (type->isIncompleteType() || type->isFunctionType() || type->isDependentType()) return false;
  const clang::RecordDecl* record = type->getAsRecordDecl();
  return record == nullptr || has_layout(record);
}

class Declarations {
 public:
  explicit Declarations(const clang::ASTContext& context)
      : context_(context), sources_(context.getSourceManager()) {}

  void walk(const clang::DeclContext* scope) {
    for (const clang::Decl* decl : scope->decls()) {
      if (const auto* record = llvm::dyn_cast<clang::RecordDecl>(decl)) {
        add_record(record);
      } else if (const auto* enumeration = llvm::dyn_cast<clang::EnumDecl>(decl)) {
        add_enum(enumeration);
      } else if (const auto* name = llvm::dyn_cast<clang::TypedefNameDecl>(decl)) {
        add_typedef(name);
      } else if (llvm::isa<clang::LinkageSpecDecl, clang::NamespaceDecl>(decl)) {
        walk(llvm::cast<clang::DeclContext>(decl));
      }
    }
  }

  void move_into(json::Object& run) {
    run["enums"] = std::move(enums_);
    run["typedefs"] = std::move(typedefs_);
    run["records"] = std::move(records_);
  }

 private:
  // True once per entity, even if it is declared several times.
  bool is_new(const clang::Decl* decl) {
    return !decl->isImplicit() && in_user_file(decl->getLocation(), sources_) &&
           seen_.insert(decl->getCanonicalDecl()).second;
  }

  void add_enum(const clang::EnumDecl* declared) {
    const clang::EnumDecl* defined = declared->getDefinition();
    if (defined != declared || defined->isInvalidDecl() || !is_new(defined)) return;
    const clang::QualType underlying = defined->getIntegerType().getCanonicalType();
    if (underlying.isNull() || underlying->isDependentType()) return;
    json::Array enumerators;
    for (const clang::EnumConstantDecl* enumerator : defined->enumerators()) {
      enumerators.push_back(describe_enumerator(enumerator));
    }
    json::Object described{
        {"name", json_text(tag_name(defined))},
        {"underlying", json_text(underlying.getAsString(context_.getPrintingPolicy()))},
        {"size", byte_count(context_.getTypeSizeInChars(underlying))},
        {"signed", underlying->isSignedIntegerType()},
        {"fixed", defined->isFixed()},
        {"scoped", defined->isScoped()},
        {"enumerators", std::move(enumerators)},
    };
    add_place(described, defined->getLocation(), sources_);
    enums_.push_back(std::move(described));
  }

  json::Object describe_enumerator(const clang::EnumConstantDecl* enumerator) const {
    json::Value spelled = nullptr;
    if (const clang::Expr* value = enumerator->getInitExpr()) {
      const auto range = clang::CharSourceRange::getTokenRange(value->getSourceRange());
      spelled = json_text(clang::Lexer::getSourceText(sources_.getExpansionRange(range), sources_,
                                                      context_.getLangOpts()));
    }
    return json::Object{
        {"name", json_text(enumerator->getName())},
        {"value", json_number(enumerator->getInitVal())},
        {"line", sources_.getExpansionLineNumber(enumerator->getLocation())},
        {"spelled", std::move(spelled)},
    };
  }

  void add_typedef(const clang::TypedefNameDecl* name) {
    if (name->isInvalidDecl() || !is_new(name)) return;
    const clang::QualType type = name->getUnderlyingType();
    if (type->isDependentType()) return;
    json::Object described{
        {"name", json_text(qualified_name(name))},
        {"type", json_text(spell_type(type, context_))},
        {"size", nullptr},
        {"align", nullptr},
        {"signed", nullptr},
        {"is_enum", type->isEnumeralType()},
    };
    if (has_size(type)) {
      described["size"] = byte_count(context_.getTypeSizeInChars(type));
      described["align"] = byte_count(context_.getTypeAlignInChars(type));
      if (type->isIntegralOrEnumerationType()) {
        described["signed"] = type->isSignedIntegerOrEnumerationType();
      }
    }
    add_place(described, name->getLocation(), sources_);
    typedefs_.push_back(std::move(described));
  }

  void add_record(const clang::RecordDecl* declared) {
    const clang::RecordDecl* defined = declared->getDefinition();
    if (defined != nullptr && defined != declared) return;
    if (declared->isDependentType() || !is_new(declared)) return;
    const bool laid_out = has_layout(declared);
    // Clang's remains of a second definition of the same name.
    if (declared->isInvalidDecl() && tag_name(declared).empty()) return;
    json::Object described{
        {"name", json_text(tag_name(declared))},
        {"kind", declared->getKindName().str()},
        {"complete", defined != nullptr},
        {"valid", defined == nullptr || laid_out},
        {"packed", laid_out && is_packed(declared)},
        {"size", nullptr},
        {"align", nullptr},
        {"fields", json::Array()},
    };
    if (laid_out) {
      const clang::ASTRecordLayout& layout = context_.getASTRecordLayout(declared);
      described["size"] = byte_count(layout.getSize());
      described["align"] = byte_count(layout.getAlignment());
    }
    json::Array fields;
    for (const clang::FieldDecl* field : declared->fields()) {
      fields.push_back(describe_field(field, laid_out));
    }
    described["fields"] = std::move(fields);
    add_place(described, declared->getLocation(), sources_);
    records_.push_back(std::move(described));
    walk(declared);
  }

  // Whether an attribute or a pragma aligns a field less than its type requires.
  bool is_packed(const clang::RecordDecl* record) const {
    if (record->hasAttr<clang::PackedAttr>()) return true;
    return std::any_of(record->field_begin(), record->field_end(),
                       [this](const clang::FieldDecl* field) {
                         return field_align(field) < context_.getTypeAlign(field->getType());
                       });
  }

  // In bits; combines the type, the packing and `alignas`.
  unsigned field_align(const clang::FieldDecl* field) const {
    const clang::RecordDecl* record = field->getParent();
    const bool packed = field->hasAttr<clang::PackedAttr>() || record->hasAttr<clang::PackedAttr>();
    unsigned align = packed ? 8 : context_.getTypeAlign(field->getType());
    align = std::max(align, field->getMaxAlignment());
    if (const auto* limit = record->getAttr<clang::MaxFieldAlignmentAttr>()) {
      align = std::min(align, limit->getAlignment());
    }
    return align;
  }

  // The type as spelled in the language, without the locations of unnamed types.
  std::string written_type(const clang::FieldDecl* field) const {
    clang::PrintingPolicy policy = context_.getPrintingPolicy();
    policy.AnonymousTagLocations = false;
    return field->getType().getAsString(policy);
  }

  json::Object describe_field(const clang::FieldDecl* field, bool laid_out) const {
    json::Object described{
        {"name", json_text(field->getName())},
        {"type", json_text(written_type(field))},
        {"canonical", json_text(spell_type(field->getType(), context_))},
        {"line", sources_.getExpansionLineNumber(field->getLocation())},
        {"callback", describe_callback(field, context_)},
        {"offset", nullptr},
        {"bits", nullptr},
        {"size", nullptr},
        {"align", nullptr},
    };
    if (!laid_out) return described;
    const uint64_t bits = context_.getFieldOffset(field);
    described["offset"] = context_.toCharUnitsFromBits(static_cast<int64_t>(bits)).getQuantity();
    described["size"] = byte_count(context_.getTypeSizeInChars(field->getType()));
    described["align"] = byte_count(context_.toCharUnitsFromBits(field_align(field)));
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

void add_declarations(json::Object& run, const clang::ASTContext& context) {
  Declarations declarations(context);
  declarations.walk(context.getTranslationUnitDecl());
  declarations.move_into(run);
}

}  // namespace fletching::extract
