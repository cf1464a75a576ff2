// Compares the generated declarations with the oracle, struct by struct, in five ways. The fields
// come from the generated list, so a wrong spec fails here at run time with the oracle's line; no
// field name is hand-written.
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <type_traits>

#include "abi_fields.hpp"
#include "bits.hpp"
#include "callback.hpp"
#include "object.hpp"
#include "oracle.h"
#include "verdict.hpp"

namespace fletching::testing {
namespace {

void append_name(std::string& names, const char* name) {
  names += (names.empty() ? "" : ",") + std::string(name);
}

// --- Layout

template <typename Struct>
void check_layout(Verdict& verdict) {
  const char* name = Fields<Struct>::kName;
  Struct object{};
  std::string field_names;
  const auto check_field = [&](const char* path, const auto& field) {
    const auto offset =
        reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(&object);
    verdict.ask(FletchingOracleCheckField, name, path, std::int64_t{offset},
                std::int64_t{sizeof(field)});
  };
  Fields<Struct>::each_field(
      object, [&](const char* field_name, const auto&) { append_name(field_names, field_name); });
  verdict.ask(FletchingOracleCheckFieldNames, name, field_names.c_str());
  Fields<Struct>::each_field(object, check_field);
  Fields<Struct>::each_leaf(object, check_field);
  std::string callback_names;
  Fields<Struct>::each_callback([&]<auto Member>(const char* callback) {
    append_name(callback_names, callback);
    verdict.ask(FletchingOracleCheckSignature, name, callback,
                Callback<Member>::signature().c_str());
  });
  verdict.ask(FletchingOracleCheckCallbackNames, name, callback_names.c_str());
  verdict.ask(FletchingOracleCheckStruct, name, std::int64_t{sizeof(Struct)},
              std::int64_t{alignof(Struct)});
}

// --- Memory

/// Calls visit(path, element, value) for each field, and for each element of an array.
template <typename Struct, typename Visitor>
void each_value(Struct& object, const Visitor& visit) {
  Fields<Struct>::each_leaf(object, [&](const char* path, auto& leaf) {
    if constexpr (std::is_array_v<std::remove_reference_t<decltype(leaf)>>) {
      std::int32_t element = 0;
      for (auto& value : leaf) visit(path, element++, value);
    } else {
      visit(path, 0, leaf);
    }
  });
}

template <typename Struct>
void check_c_writes(Verdict& verdict) {
  const char* name = Fields<Struct>::kName;
  Object<Struct> object(FletchingOracleSize(name));
  // Padding is nonzero, so a field that is too wide reads a wrong value.
  std::memset(&*object, 0xFF, sizeof(Struct));
  verdict.require(FletchingOracleFill(name, &*object) == 0,
                  std::string(name) + ": C cannot fill it");
  each_value(*object, [&](const char* path, std::int32_t element, const auto& value) {
    verdict.ask(FletchingOracleCheckRead, name, path, element, to_bits(value));
  });
}

template <typename Struct>
void check_c_verifies(Verdict& verdict) {
  const char* name = Fields<Struct>::kName;
  Object<Struct> object(FletchingOracleSize(name));
  each_value(*object, [&](const char* path, std::int32_t element, auto& value) {
    value = from_bits<std::remove_reference_t<decltype(value)>>(
        FletchingOracleCanary(name, path, element));
  });
  verdict.ask(FletchingOracleCheckWritten, name, &*object);
}

// --- Calls

/// With a different layout, a call would jump to an invalid address.
template <typename Struct>
bool can_be_called(Verdict& verdict) {
  Verdict layout;
  check_layout<Struct>(layout);
  for (const std::string& line : layout.lines()) verdict.require(false, "not called: " + line);
  return layout.lines().empty();
}

/// Calls check(callback) for each callback that the oracle has and the binding lacks, and compares
/// the numbers of callbacks.
template <typename Struct, typename Check>
void each_missing_callback(Verdict& verdict, const Check& check) {
  const char* name = Fields<Struct>::kName;
  std::set<std::string> own;
  Fields<Struct>::each_callback([&]<auto Member>(const char* callback) { own.insert(callback); });
  const std::int32_t count = FletchingOracleCallbackCount(name);
  for (std::int32_t i = 0; i < count; ++i) {
    const char* callback = FletchingOracleCallbackName(name, i);
    if (!own.contains(callback)) check(callback);
  }
  verdict.require(count == static_cast<std::int32_t>(own.size()),
                  std::string(name) + ": " + std::to_string(count) + " callbacks upstream, " +
                      std::to_string(own.size()) + " in the binding");
}

template <typename Visitor>
void each_variant(const Visitor& visit) {
  for (std::int32_t variant = 0; variant < FletchingOracleVariantCount(); ++variant) visit(variant);
}

template <typename Struct>
void check_c_calls(Verdict& verdict) {
  const char* name = Fields<Struct>::kName;
  if (!can_be_called<Struct>(verdict)) return;
  Object<Struct> object(FletchingOracleSize(name));
  Fields<Struct>::each_callback([&]<auto Member>(const char* callback) {
    Callback<Member>::name = callback;
    (*object).*Member = Callback<Member>::enter;
  });
  const auto call = [&](const char* callback) {
    each_variant([&](std::int32_t variant) {
      verdict.ask(FletchingOracleCall, name, callback, variant, static_cast<void*>(&*object));
    });
  };
  Fields<Struct>::each_callback([&]<auto Member>(const char* callback) { call(callback); });
  each_missing_callback<Struct>(verdict, call);
}

template <typename Struct>
void check_c_is_called(Verdict& verdict) {
  const char* name = Fields<Struct>::kName;
  if (!can_be_called<Struct>(verdict)) return;
  Object<Struct> object(FletchingOracleSize(name));
  verdict.require(FletchingOracleInstall(name, &*object) == 0,
                  std::string(name) + ": C cannot install its callbacks");
  Fields<Struct>::each_callback([&]<auto Member>(const char* callback) {
    each_variant([&](std::int32_t variant) {
      FletchingOracleBeginCall(name, callback, variant, &*object);
      const bool installed = (*object).*Member != nullptr;
      const std::uint64_t result = installed ? Callback<Member>::call(*object) : 0;
      verdict.ask(FletchingOracleEndCall, result);
    });
  });
  each_missing_callback<Struct>(verdict, [&](const char* callback) {
    FletchingOracleBeginCall(name, callback, 0, &*object);
    verdict.ask(FletchingOracleEndCall, 0);
  });
}

// --- The tests

template <typename Struct>
class Abi : public ::testing::Test {
 protected:
  static void run(const char* direction, void (*check)(Verdict&)) {
    Verdict verdict;
    check(verdict);
    verdict.finish(Fields<Struct>::kName, direction);
  }
};

struct StructName {
  template <typename Struct>
  static std::string GetName(int) {
    return Fields<Struct>::kName;
  }
};

TYPED_TEST_SUITE(Abi, Structs, StructName);

TYPED_TEST(Abi, Layout) { this->run("layout", check_layout<TypeParam>); }
TYPED_TEST(Abi, CWrites) { this->run("c_writes", check_c_writes<TypeParam>); }
TYPED_TEST(Abi, CVerifies) { this->run("c_verifies", check_c_verifies<TypeParam>); }
TYPED_TEST(Abi, CCalls) { this->run("c_calls", check_c_calls<TypeParam>); }
TYPED_TEST(Abi, CIsCalled) { this->run("c_is_called", check_c_is_called<TypeParam>); }

template <typename... Types>
std::set<std::string> names_of(::testing::Types<Types...>) {
  return {Fields<Types>::kName...};
}

TEST(AbiList, HasEveryUpstreamStruct) {
  const std::set<std::string> own = names_of(Structs{});
  ASSERT_GT(FletchingOracleStructCount(), 0);
  for (std::int32_t i = 0; i < FletchingOracleStructCount(); ++i) {
    const char* name = FletchingOracleStructName(i);
    EXPECT_TRUE(own.contains(name)) << name << ": the binding has no such struct";
  }
}

TEST(AbiList, ConstantsMatchUpstream) {
  Verdict verdict;
  std::string names;
  for (const ConstantEntry& constant : kConstants) {
    append_name(names, constant.name);
    verdict.ask(FletchingOracleCheckConstant, constant.name, constant.value);
  }
  verdict.ask(FletchingOracleCheckConstantNames, names.c_str());
  std::map<std::string, std::string> enums;
  for (const EnumeratorEntry& entry : kEnumerators) {
    const std::string value = std::string(entry.name) + "=" + std::to_string(entry.value);
    append_name(enums[entry.owner], value.c_str());
  }
  for (const char* owner : {"DLDeviceType", "DLDataTypeCode"}) {
    verdict.ask(FletchingOracleCheckEnumerators, owner, enums[owner].c_str());
  }
  verdict.finish("constants", "layout");
}

}  // namespace
}  // namespace fletching::testing
