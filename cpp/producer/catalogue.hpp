// The catalogue: all cases as plain data, independent of structs and devices.
#ifndef FLETCHING_PRODUCER_CATALOGUE_HPP
#define FLETCHING_PRODUCER_CATALOGUE_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fletching/abi.h"

namespace fletching::producer {

using Bytes = std::vector<uint8_t>;

// An array with its type: the contents of an ArrowSchema and its ArrowArray.
struct Node {
  std::string format;                                         // "+s"
  std::string name;                                           // "price"; empty: exported as NULL
  int64_t flags = ARROW_FLAG_NULLABLE;                        // 2
  std::vector<std::pair<std::string, std::string>> metadata;  // {{"unit", "m"}}; empty: NULL
  int64_t length = 0;                                         // 3
  int64_t null_count = 0;                                     // 1
  int64_t offset = 0;                                         // 2
  std::vector<std::optional<Bytes>> buffers;                  // {nullopt, 12 bytes}; nullopt: NULL
  std::vector<Node> children;
  std::shared_ptr<const Node> dictionary;  // NULL unless dictionary-encoded
};

struct Case {
  std::string name;  // "record_batch"
  Node node;
};

const std::vector<Case>& catalogue();

// The cases by topic, each topic in a separate file.
using NamedNodes = std::vector<std::pair<std::string, Node>>;
NamedNodes primitive_cases();
NamedNodes binary_cases();
NamedNodes nested_cases();
NamedNodes batch_cases();

// The bytes of each buffer that a consumer may read, computed from the format and offset + length.
std::vector<int64_t> seen_sizes(const Node& node);

// True for the sizes buffer of a view array, which is in host memory on every device.
bool is_in_host_memory(const Node& node, size_t buffer);

// The block that ArrowSchema.metadata points to; empty if there is no metadata.
std::string encode_metadata(const Node& node);

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_CATALOGUE_HPP
