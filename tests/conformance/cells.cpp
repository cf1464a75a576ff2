// SPDX-License-Identifier: Apache-2.0
//
// The cells of the round trip. tests/roundtrip/README.md describes their keys.
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "gated.hpp"

namespace fletching::conformance {
namespace {

const char* status_of(const char* backend) {
  std::int32_t presence = FLETCHING_PRODUCER_ABSENT;
  FletchingMessage message{};
  FletchingProducerBackendPresence(backend, &presence, &message);
  if (presence == FLETCHING_PRODUCER_REAL) return "real";
  return presence == FLETCHING_PRODUCER_STAND_IN ? "stand-in" : "absent";
}

std::string reason_of(const FletchingConformanceResult& result) {
  const std::string_view verdict = result.verdict;
  if (verdict == "right") return "";
  if (verdict == "wrong") return std::string(result.message);
  return verdict == "absent" ? "the machine lacks the device" : "the subject does not support it";
}

}  // namespace

void Run::report(const Cell& cell, const FletchingConformanceResult& result, std::int64_t compared,
                 std::int64_t own_releases) const {
  const char* const path = std::getenv("FLETCHING_CELLS");
  const char* const column = std::getenv("FLETCHING_COLUMN");
  if (path == nullptr || column == nullptr || std::string_view(column) != subject.name) return;
  const std::string_view verdict = result.verdict;
  const bool was_played = verdict == "right" || verdict == "wrong";
  const nlohmann::json line{
      {"language", column},
      {"backend", cell.backend},
      {"case", cell.name},
      {"direction", cell.direction},
      {"status", was_played ? status_of(cell.backend) : result.verdict},
      {"reason", reason_of(result)},
      {"asserted", compared},
      {"releases", own_releases},
      {"ok", verdict == "right"},
  };
  using Json = nlohmann::json;
  std::ofstream(path, std::ios::app)
      << line.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace fletching::conformance
