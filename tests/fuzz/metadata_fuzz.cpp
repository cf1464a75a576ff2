// SPDX-License-Identifier: Apache-2.0
//
// Metadata blocks: a view stays inside the block and encodes to the same bytes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fletching/metadata.hpp"
#include "require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using fletching::fuzz::require;
  const std::vector<char> block(data, data + size);  // copied, so that the sanitizer guards its end
  if (block.empty()) return 0;
  const auto view = fletching::MetadataView::read(block.data(), block.size());
  if (!view) {
    require(!view.error().message().empty(), "an error has words");
    return 0;
  }
  std::vector<fletching::KeyValue> pairs;
  for (const auto& pair : *view) {
    for (const std::string_view text : {pair.key, pair.value}) {
      require(
          text.data() >= block.data() && text.data() + text.size() <= block.data() + block.size(),
          "texts lie in the block");
    }
    pairs.push_back(pair);
  }
  const auto again = fletching::encode_metadata(pairs);
  require(view->size() == pairs.size(), "the number of pairs is right");
  require(view->block().size() <= block.size(), "the block is no longer than it is");
  require(again.ok(), "what was read can be encoded");
  require(std::string_view(*again) == view->block(),
          "the encoding of what was read is what it was read from");
  return 0;
}
