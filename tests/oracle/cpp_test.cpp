// Checks that a C++ compiler derives the same from upstream's headers as the oracle, which is C.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

#include "oracle.h"
#include "upstream.h"

namespace {

int g_failures = 0;

void Agree(const std::string& what, std::int64_t oracle, std::int64_t cpp) {
  if (oracle == cpp) return;
  ++g_failures;
  std::fprintf(stderr, "%s: %lld in C, %lld in C++\n", what.c_str(), static_cast<long long>(oracle),
               static_cast<long long>(cpp));
}

#define CHECK_STRUCT(S)                                  \
  Agree(#S " size", FletchingOracleSize(#S), sizeof(S)); \
  Agree(#S " alignment", FletchingOracleAlign(#S), alignof(S));
#define CHECK_FIELD(S, kind, field, type)                                                \
  Agree(#S "." #field " offset", FletchingOracleOffset(#S, #field), offsetof(S, field)); \
  Agree(#S "." #field " size", FletchingOracleFieldSize(#S, #field), sizeof(S::field));
#define CHECK_FIELDS(S) FIELDS_##S(CHECK_FIELD, S)

void CheckStructs() {
  STRUCTS(CHECK_STRUCT)
  STRUCTS(CHECK_FIELDS)
}

/// "kDLCPU=1,kDLCUDA=2", with the values in C++.
#define LIST(name) (#name "=" + std::to_string(static_cast<std::int64_t>(name)) + ",") +
#define CHECK_ENUM(E) CheckEnum(#E, ENUMERATORS_##E(LIST) "");

void CheckEnum(const char* name, std::string values) {
  values.pop_back();
  char message[256] = "";
  if (FletchingOracleCheckEnumerators(name, values.c_str(), message, sizeof(message)) == 0) return;
  ++g_failures;
  std::fprintf(stderr, "%s\n", message);
}

#define CHECK_CONSTANT(name) \
  g_failures += FletchingOracleCheckConstant(#name, static_cast<std::int64_t>(name), nullptr, 0);

// A closed enum would have another width on some targets; the number is passed as an int32.
static_assert(std::is_same_v<std::underlying_type_t<DLDeviceType>, std::int32_t>,
              "DLDeviceType is an int32_t in C++");

}  // namespace

int main() {
  CheckStructs();
  ENUMS(CHECK_ENUM)
  CONSTANTS(CHECK_CONSTANT)
  if (g_failures > 0) std::fprintf(stderr, "oracle_cpp_test: %d differences\n", g_failures);
  return g_failures > 0 ? 1 : 0;
}
