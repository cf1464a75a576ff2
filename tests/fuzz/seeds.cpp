// SPDX-License-Identifier: Apache-2.0
//
// seeds FOLDER: writes a few inputs for every target into FOLDER/<target>/.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "fletching/cuda_array_interface.hpp"
#include "fletching/format.hpp"
#include "fletching/metadata.hpp"

namespace {

using Seeds = std::vector<std::string>;

Seeds metadata() {
  return {
      fletching::encode_metadata({}).value(),
      fletching::encode_metadata({{"key", "value"}}).value(),
      fletching::encode_metadata({{"ARROW:extension:name", "arrow.bool8"}, {"", "\0a"}}).value(),
  };
}

/// Flags, number of children and format, in the node format of schema_fuzz.cpp.
std::string node(unsigned char flags, unsigned char children, std::string_view format) {
  std::string text{static_cast<char>(flags), static_cast<char>(children)};
  return text.append(format).append(1, '\0');
}

Seeds schema() {
  Seeds seeds;
  for (const auto& plain : fletching::detail::kPlainFormats) {
    seeds.push_back(node(0, 0, plain.text));
  }
  for (const char* format : {"w:42", "d:10,2", "d:38,-4,256", "tss:", "tsn:Europe/Berlin", "+w:3",
                             "+ud:0,5,7", "+us:1", "+l", "+r"}) {
    seeds.push_back(node(0, 1, format) + node(0, 0, "i"));
  }
  seeds.push_back(node(0, 2, "+s") + node(0, 0, "i") + node(32, 0, "s") + node(0, 0, "u"));
  return seeds;
}

/// Nothing spoiled, number of children, the type's number of buffers, format, children, then the
/// length, in the node format of array_fuzz.cpp.
std::string pair(unsigned char children, std::string_view format, std::string_view below = {},
                 unsigned char spoiled = 0) {
  std::string text{static_cast<char>(spoiled), '\0', static_cast<char>(children), '\0'};
  return text.append(format).append(1, '\0').append(below).append(1, '\3');
}

Seeds array() {
  Seeds seeds;
  for (const auto& plain : fletching::detail::kPlainFormats) seeds.push_back(pair(0, plain.text));
  for (const char* format : {"+w:1", "+ud:5", "+us:1", "+l", "+vL", "+s"}) {
    seeds.push_back(pair(1, format, pair(0, "i")));
  }
  seeds.push_back(pair(2, "+r", pair(0, "s") + pair(0, "u")));
  seeds.push_back(pair(1, "+m", pair(2, "+s", pair(0, "i") + pair(0, "vu"))));
  seeds.push_back(pair(2, "+s", pair(0, "i") + pair(0, "C", pair(0, "u"), 4)));
  return seeds;
}

/// The number of a format in data_fuzz.cpp, then small numbers.
Seeds data() {
  Seeds seeds;
  for (int format = 0; format < 31; ++format) {
    for (const char small : {'\0', '\1', '\3'}) {
      seeds.push_back(std::string(1, static_cast<char>(format)) + std::string(200, small));
    }
  }
  return seeds;
}

Seeds text() { return {"plain", "caf\xC3\xA9", "\xF0\x9F\x8F\xB9", "\xFF\xFE", "a\tb\nc\x1B[0m"}; }

Seeds typestr() {
  Seeds seeds;
  for (const char* type : {"<f4", ">i8", "|b1", "<t1", "<M8[25s]", "|V16", "<U3", "|u1"}) {
    // No shape, no strides, a pointer, version 3.
    seeds.push_back(std::string(1, '\0') + std::string(8, '\1') + '\3' + type);
  }
  return seeds;
}

/// Lengths for one to three levels.
Seeds tensor() { return {std::string(8, '\0'), std::string(24, '\1'), std::string(40, '\2')}; }

Seeds dlpack() { return {std::string(64, '\0'), std::string(64, '\1'), std::string(96, '\2')}; }

/// Calls of a stream, a device stream and an async stream.
Seeds validate() {
  Seeds seeds;
  for (const char kind : {'\0', '\1', '\2'}) {
    for (const char call : {'\0', '\2', '\3'}) {
      seeds.push_back(std::string(1, kind) + std::string(100, call));
      std::string many(1, kind);
      for (int i = 0; i < 190; ++i) many.push_back(static_cast<char>(i * 7 + call));
      seeds.push_back(many);
    }
  }
  return seeds;
}

/// Returns one input for each case of the corpus file.
Seeds corpus() {
  Seeds seeds;
  std::ifstream file(FLETCHING_CORPUS);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("    {")) continue;
    if (line.ends_with(',')) line.pop_back();
    seeds.push_back(R"({"cases": [)" + line + "]}");
  }
  return seeds;
}

void write(const std::filesystem::path& folder, const Seeds& seeds) {
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream file(folder / std::to_string(i), std::ios::binary);
    file << seeds[i];
    if (!file.flush()) throw std::runtime_error("cannot write to " + folder.string());
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: seeds FOLDER\n", stderr);
    return 2;
  }
  try {
    const std::filesystem::path folder = arguments[1];
    write(folder / "array", array());
    write(folder / "corpus", corpus());
    write(folder / "data", data());
    write(folder / "dlpack", dlpack());
    write(folder / "tensor", tensor());
    write(folder / "metadata", metadata());
    write(folder / "schema", schema());
    write(folder / "text", text());
    write(folder / "typestr", typestr());
    write(folder / "validate", validate());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "seeds: %s\n", error.what());
    return 2;
  }
  return 0;
}
