#include "cells.hpp"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace fletching::testing {

bool append_cell(const std::string& struct_name, const std::string& direction,
                 std::int64_t asserted, const std::string& reason) {
  const char* const path = std::getenv("FLETCHING_CELLS");
  if (path == nullptr || *path == '\0') return true;
  const nlohmann::json line{
      {"language", "cpp"},      {"backend", "none"}, {"struct", struct_name},
      {"direction", direction}, {"status", "real"},  {"reason", reason},
      {"asserted", asserted},   {"releases", 0},     {"ok", reason.empty()},
  };
  using Json = nlohmann::json;
  std::ofstream file(path, std::ios::app);
  file << line.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n" << std::flush;
  return static_cast<bool>(file);
}

}  // namespace fletching::testing
