#include "evaluate.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clang/AST/Decl.h"
#include "clang/Basic/OperatorPrecedence.h"
#include "clang/Lex/LiteralSupport.h"

namespace fletching::extract {
namespace {

using clang::QualType;
using clang::Token;
using clang::tok::TokenKind;
using llvm::APSInt;
using Value = std::optional<APSInt>;

// More than any constant needs, and few enough that a macro which doubles itself forty times ends
// here.
constexpr size_t kMostTokens = 2000;

// The body after macro expansion; empty when it is too long.
std::vector<Token> Expand(llvm::ArrayRef<Token> body, clang::Preprocessor& preprocessor) {
  if (body.size() > kMostTokens) return {};
  auto stream = std::make_unique<Token[]>(body.size() + 1);
  for (size_t i = 0; i < body.size(); ++i) {
    stream[i] = body[i];
    if (stream[i].is(TokenKind::raw_identifier)) preprocessor.LookUpIdentifierInfo(stream[i]);
  }
  stream[body.size()].startToken();
  stream[body.size()].setKind(TokenKind::eof);
  preprocessor.EnterTokenStream(std::move(stream), body.size() + 1,
                                /*DisableMacroExpansion=*/false, /*IsReinject=*/false);
  std::vector<Token> expanded;
  Token token;
  for (preprocessor.Lex(token); token.isNot(TokenKind::eof); preprocessor.Lex(token)) {
    if (expanded.size() == kMostTokens) return {};
    expanded.push_back(token);
  }
  return expanded;
}

APSInt Convert(const APSInt& value, unsigned width, bool is_signed) {
  APSInt converted = value.extOrTrunc(width);
  converted.setIsSigned(is_signed);
  return converted;
}

class Evaluator {
 public:
  Evaluator(llvm::ArrayRef<Token> tokens, clang::Preprocessor& preprocessor,
            const clang::ASTContext& context)
      : tokens_(tokens),
        preprocessor_(preprocessor),
        context_(context),
        int_width_(context.getTypeSize(context.IntTy)) {}

  Value Run() {
    Value value = Conditional();
    if (!tokens_.empty()) return std::nullopt;
    return value;
  }

 private:
  bool Take(TokenKind kind) {
    if (tokens_.empty() || tokens_.front().isNot(kind)) return false;
    tokens_ = tokens_.drop_front();
    return true;
  }

  Value Conditional() {
    Value condition = Binary(clang::prec::LogicalOr);
    if (!Take(TokenKind::question)) return condition;
    const Value yes = Conditional();
    if (!Take(TokenKind::colon)) return std::nullopt;
    const Value no = Conditional();
    if (!condition || !yes || !no) return std::nullopt;
    const auto [left, right] = Balance(*yes, *no);
    return condition->getBoolValue() ? left : right;
  }

  Value Binary(int lowest) {
    Value left = Unary();
    while (!tokens_.empty()) {
      const TokenKind op = tokens_.front().getKind();
      const int precedence = clang::getBinOpPrecedence(op, true, true);
      if (precedence < lowest || precedence > clang::prec::Multiplicative) break;
      Take(op);
      const Value right = Binary(precedence + 1);
      left = left && right ? Apply(op, *left, *right) : std::nullopt;
    }
    return left;
  }

  Value Unary() {
    if (tokens_.empty()) return std::nullopt;
    const TokenKind op = tokens_.front().getKind();
    const bool is_operator = op == TokenKind::plus || op == TokenKind::minus ||
                             op == TokenKind::tilde || op == TokenKind::exclaim;
    if (!is_operator) return Primary();
    Take(op);
    const Value operand = Unary();
    if (!operand) return std::nullopt;
    if (op == TokenKind::exclaim) return Truth(!operand->getBoolValue());
    const APSInt promoted = Promote(*operand);
    if (op == TokenKind::minus) return -promoted;
    return op == TokenKind::tilde ? ~promoted : promoted;
  }

  Value Primary() {
    if (Take(TokenKind::l_paren)) {
      if (const std::optional<QualType> type = TakeType()) return Cast(Unary(), *type);
      const Value value = Conditional();
      return Take(TokenKind::r_paren) ? value : std::nullopt;
    }
    const Token token = tokens_.front();
    Take(token.getKind());
    switch (token.getKind()) {
      case TokenKind::numeric_constant:
        return Literal(token);
      case TokenKind::char_constant:
        return Character(token);
      case TokenKind::kw_true:
        return Truth(true);
      case TokenKind::kw_false:
        return Truth(false);
      case TokenKind::identifier:
        if (const auto* enumerator = Find<clang::EnumConstantDecl>(token)) {
          return enumerator->getInitVal();
        }
        [[fallthrough]];
      default:
        return std::nullopt;
    }
  }

  // The type of a cast and its closing parenthesis; takes nothing when they are not next.
  std::optional<QualType> TakeType() {
    llvm::ArrayRef<Token> rest = tokens_;
    std::optional<QualType> type;
    if (!rest.empty() && rest.front().is(TokenKind::identifier)) {
      if (const auto* named = Find<clang::TypeDecl>(rest.front())) {
        type = context_.getTypeDeclType(named);
      }
      rest = rest.drop_front();
    } else {
      size_t words = 0;
      while (words < rest.size() &&
             rest[words].isOneOf(TokenKind::kw_int, TokenKind::kw_long, TokenKind::kw_short,
                                 TokenKind::kw_char, TokenKind::kw_signed, TokenKind::kw_unsigned,
                                 TokenKind::kw_bool, TokenKind::kw__Bool)) {
        ++words;
      }
      if (words > 0) type = BuiltinType(rest.take_front(words));
      rest = rest.drop_front(words);
    }
    if (!type || !(*type)->isIntegralOrEnumerationType()) return std::nullopt;
    if (rest.empty() || rest.front().isNot(TokenKind::r_paren)) return std::nullopt;
    tokens_ = rest.drop_front();
    return type;
  }

  [[nodiscard]] QualType BuiltinType(llvm::ArrayRef<Token> words) const {
    const auto count = [words](TokenKind kind) {
      return std::count_if(words.begin(), words.end(),
                           [kind](const Token& word) { return word.is(kind); });
    };
    if (count(TokenKind::kw_bool) + count(TokenKind::kw__Bool) > 0) return context_.BoolTy;
    const bool is_unsigned = count(TokenKind::kw_unsigned) > 0;
    if (count(TokenKind::kw_char) > 0) {
      if (is_unsigned) return context_.UnsignedCharTy;
      return count(TokenKind::kw_signed) > 0 ? context_.SignedCharTy : context_.CharTy;
    }
    QualType type = context_.IntTy;
    if (count(TokenKind::kw_short) > 0) type = context_.ShortTy;
    if (count(TokenKind::kw_long) == 1) type = context_.LongTy;
    if (count(TokenKind::kw_long) > 1) type = context_.LongLongTy;
    return is_unsigned ? context_.getCorrespondingUnsignedType(type) : type;
  }

  [[nodiscard]] Value Cast(const Value& value, QualType type) const {
    if (!value) return std::nullopt;
    if (type->isBooleanType()) return Truth(value->getBoolValue());
    return Convert(*value, context_.getIntWidth(type), type->isSignedIntegerOrEnumerationType());
  }

  // The first of int, long, long long (and their unsigned forms) that holds the value and suits the
  // suffix.
  [[nodiscard]] Value Literal(const Token& token) const {
    const std::string spelled = preprocessor_.getSpelling(token);
    clang::NumericLiteralParser literal(
        spelled, token.getLocation(), preprocessor_.getSourceManager(), preprocessor_.getLangOpts(),
        preprocessor_.getTargetInfo(), preprocessor_.getDiagnostics());
    llvm::APInt bits(64, 0);
    if (literal.hadError || !literal.isIntegerLiteral() || literal.hasUDSuffix() ||
        literal.GetIntegerValue(bits)) {
      return std::nullopt;
    }
    const bool unsigned_allowed = literal.isUnsigned || literal.getRadix() != 10;
    const unsigned long_width = context_.getTypeSize(context_.LongTy);
    unsigned shortest = int_width_;
    if (literal.isLong) shortest = long_width;
    if (literal.isLongLong) shortest = 64;
    for (const unsigned width : {int_width_, long_width, 64U}) {
      if (width < shortest) continue;
      if (!literal.isUnsigned && bits.isIntN(width - 1)) return Integer(bits, width, true);
      if (unsigned_allowed && bits.isIntN(width)) return Integer(bits, width, false);
    }
    return Integer(bits, 64, false);
  }

  [[nodiscard]] Value Character(const Token& token) const {
    const std::string spelled = preprocessor_.getSpelling(token);
    const char* begin = spelled.data();
    const clang::CharLiteralParser literal(begin, begin + spelled.size(), token.getLocation(),
                                           preprocessor_, token.getKind());
    if (literal.hadError()) return std::nullopt;
    return Integer(llvm::APInt(64, literal.getValue()), int_width_, true);
  }

  static APSInt Integer(const llvm::APInt& bits, unsigned width, bool is_signed) {
    return APSInt(bits.zextOrTrunc(width), !is_signed);
  }

  [[nodiscard]] APSInt Truth(bool value) const {
    return Integer(llvm::APInt(64, value ? 1 : 0), int_width_, true);
  }

  [[nodiscard]] APSInt Promote(const APSInt& value) const {
    return value.getBitWidth() < int_width_ ? Convert(value, int_width_, true) : value;
  }

  // The usual arithmetic conversions.
  [[nodiscard]] std::pair<APSInt, APSInt> Balance(const APSInt& left, const APSInt& right) const {
    const APSInt a = Promote(left);
    const APSInt b = Promote(right);
    const unsigned width = std::max(a.getBitWidth(), b.getBitWidth());
    const auto forces_unsigned = [width](const APSInt& value) {
      return value.getBitWidth() == width && value.isUnsigned();
    };
    const bool is_signed = !forces_unsigned(a) && !forces_unsigned(b);
    return {Convert(a, width, is_signed), Convert(b, width, is_signed)};
  }

  [[nodiscard]] Value Shift(bool left, const APSInt& value, const APSInt& count) const {
    const APSInt promoted = Promote(value);
    if (count.isNegative() || count.uge(promoted.getBitWidth())) return std::nullopt;
    const auto bits = static_cast<unsigned>(count.getZExtValue());
    return left ? promoted << bits : promoted >> bits;
  }

  [[nodiscard]] Value Apply(TokenKind op, const APSInt& left, const APSInt& right) const {
    if (op == TokenKind::lessless || op == TokenKind::greatergreater) {
      return Shift(op == TokenKind::lessless, left, right);
    }
    const auto [a, b] = Balance(left, right);
    switch (op) {
      case TokenKind::star:
        return a * b;
      case TokenKind::slash:
        return b == 0 ? Value() : a / b;
      case TokenKind::percent:
        return b == 0 ? Value() : a % b;
      case TokenKind::plus:
        return a + b;
      case TokenKind::minus:
        return a - b;
      case TokenKind::amp:
        return a & b;
      case TokenKind::caret:
        return a ^ b;
      case TokenKind::pipe:
        return a | b;
      case TokenKind::less:
        return Truth(a < b);
      case TokenKind::greater:
        return Truth(a > b);
      case TokenKind::lessequal:
        return Truth(a <= b);
      case TokenKind::greaterequal:
        return Truth(a >= b);
      case TokenKind::equalequal:
        return Truth(a == b);
      case TokenKind::exclaimequal:
        return Truth(a != b);
      case TokenKind::ampamp:
        return Truth(a.getBoolValue() && b.getBoolValue());
      case TokenKind::pipepipe:
        return Truth(a.getBoolValue() || b.getBoolValue());
      default:
        return std::nullopt;
    }
  }

  template <typename Decl>
  [[nodiscard]] const Decl* Find(const Token& name) const {
    for (const clang::NamedDecl* found :
         context_.getTranslationUnitDecl()->lookup(name.getIdentifierInfo())) {
      if (const auto* decl = llvm::dyn_cast<Decl>(found)) return decl;
    }
    return nullptr;
  }

  llvm::ArrayRef<Token> tokens_;
  clang::Preprocessor& preprocessor_;
  const clang::ASTContext& context_;
  const unsigned int_width_;
};

}  // namespace

std::optional<APSInt> Evaluate(llvm::ArrayRef<Token> body, clang::Preprocessor& preprocessor,
                               const clang::ASTContext& context) {
  const std::vector<Token> expanded = Expand(body, preprocessor);
  return Evaluator(expanded, preprocessor, context).Run();
}

}  // namespace fletching::extract
