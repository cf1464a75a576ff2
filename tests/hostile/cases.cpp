// Reads the cases of tests/corpus/hostile.json.
#include "cases.hpp"

#include "case_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// Replaces the text forms that JSON lacks with their bytes: hex digits, repetitions, int32
/// numbers.
void resolve(json& value) {
  std::string bytes;
  if (value.is_object() && value.contains("hex")) {
    const std::string digits = value["hex"];
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
      bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    }
    value = bytes;
  } else if (value.is_object() && value.contains("repeat")) {
    const std::string part = value["repeat"];
    for (int i = value.at("times"); i > 0; --i) bytes += part;
    value = bytes;
  } else if (value.is_object() && value.contains("i32")) {
    for (const int32_t number : value["i32"]) {
      bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
    value = bytes;
  } else if (value.is_structured()) {
    for (json& each : value) resolve(each);
  }
}

std::string problem;  // why reading the file failed

json read_cases() {
  try {
    std::ifstream file(fletching::case_file(FLETCHING_HOSTILE_CASES));
    if (!file) throw std::runtime_error("not found");
    json cases = json::parse(file).at("cases");
    resolve(cases);
    return cases;
  } catch (const std::exception& error) {
    problem = error.what();
    return json::array();
  }
}

const json kCases = read_cases();

int32_t outcome_of(const std::string& verdict) {
  const std::map<std::string, int32_t> outcomes{{"accept", kFletchingHostileAccepted},
                                                {"refuse", kFletchingHostileRefused},
                                                {"report", kFletchingHostileReported},
                                                {"either", kFletchingHostileTolerated},
                                                {"stall", kFletchingHostileStalled}};
  return outcomes.at(verdict);
}

/// The cases of a party. `behaviour` is the index in kCases.
Party party_of(int32_t id, const std::string& name) {
  static std::map<int32_t, std::vector<Case>> parties;
  std::vector<Case>& found = parties[id];
  for (size_t i = 0; i < kCases.size(); ++i) {
    const json& each = kCases[i];
    if (each.at("party") != name) continue;
    const int32_t outcome = outcome_of(each.at("verdict"));
    const int code = outcome == kFletchingHostileReported ? error_of(each.at("set")) : 0;
    found.push_back({text(each.at("name")), text(each.at("about")), outcome,
                     outcome == kFletchingHostileReported && code <= 0 ? EIO : code,
                     static_cast<int32_t>(i)});
  }
  return {id, static_cast<int32_t>(found.size()), found.data()};
}

}  // namespace

void RequireCases(void) {
  if (problem.empty()) return;
  std::fprintf(stderr, "hostile: %s: %s; hint: build it again, its path is compiled in\n",
               FLETCHING_HOSTILE_CASES, problem.c_str());
  std::_Exit(2);
}

const json& changes_of(const Case* found) { return kCases[found->behaviour].at("set"); }

const char* text(const json& value) {
  return value.is_null() ? nullptr : value.get_ref<const std::string&>().c_str();
}

int error_of(const json& set) {
  const auto error = set.find("error");
  if (error == set.end()) return EIO;
  if (error->is_number()) return *error;
  static const std::map<std::string_view, int> errors{
      {"EIO", EIO}, {"ENODATA", ENODATA}, {"ENOMEM", ENOMEM}, {"ENOTSUP", ENOTSUP}};
  return errors.at(text(*error));
}

const Party kSchemaParty = party_of(kFletchingHostileSchema, "schema");
const Party kArrayParty = party_of(kFletchingHostileArray, "array");
const Party kStreamParty = party_of(kFletchingHostileStream, "stream");
const Party kDeviceStreamParty = party_of(kFletchingHostileDeviceStream, "device-stream");
const Party kProducerParty = party_of(kFletchingHostileProducer, "producer");
const Party kTensorParty = party_of(kFletchingHostileTensor, "tensor");
const Party kVersionedTensorParty = party_of(kFletchingHostileVersionedTensor, "versioned-tensor");
