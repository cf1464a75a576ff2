#include "cells.hpp"

#include <cstdlib>
#include <fstream>
#include <string_view>

#include "text.hpp"

namespace fletching::roundtrip {
namespace {

std::string quoted(std::string_view text) {
  std::string json = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  return json + '"';
}

std::string line_of(const Cell& cell) {
  std::string line = R"({"language": "cpp", "status": )" + quoted(cell.status);
  const auto add = [&line](std::string_view key, const std::string& value) {
    line += ", " + quoted(key) + ": " + value;
  };
  add("backend", quoted(cell.backend));
  add(cell.subject_kind, quoted(cell.subject));
  add("direction", quoted(cell.direction));
  add("reason", quoted(cell.reason));
  add("asserted", std::to_string(cell.asserted));
  add("releases", std::to_string(cell.releases));
  add("ok", cell.ok ? "true" : "false");
  return line + "}\n";
}

}  // namespace

std::string append_cell(const Cell& cell) {
  const char* path = std::getenv("FLETCHING_CELLS");
  if (path == nullptr || *path == '\0') return "";
  std::ofstream file(path, std::ios::app);
  file << line_of(cell) << std::flush;
  if (file) return "";
  return "cannot append to '" + printable(path) + "', which FLETCHING_CELLS names";
}

}  // namespace fletching::roundtrip
