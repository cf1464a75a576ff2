// SPDX-License-Identifier: Apache-2.0
//
// Files of the corpus: any content is either read or rejected with a message. A case that is read
// is built and released.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#define FLETCHING_CORPUS_CASES "/dev/null"  // the input is the only file
#include "../corpus/corpus.cpp"  // NOLINT(bugprone-suspicious-include): its functions are static
#include "require.hpp"

namespace {

using fletching::fuzz::require;

template <class Raw>
void release(Raw& raw) {
  if (raw.release != nullptr) raw.release(&raw);
}

void build(const Case& read) {
  ArrowSchema schema{};
  ArrowArray array{};
  const auto memory = std::make_shared<Memory>();
  if (read.data.contains("schema")) build_schema(read.data["schema"], &schema, memory);
  if (read.data.contains("array")) build_array(read.data["array"], &array, memory);
  if (schema.release != nullptr) compare_schema(read.data["schema"], schema, "schema");
  if (array.release != nullptr) compare_array(read.data["array"], array, "array");
  release(schema);
  release(array);
  if (read.kind != kFletchingCorpusTensor) return;
  auto* const tensor = build_tensor<DLManagedTensorVersioned>(read.data["tensor"]);
  tensor->deleter(tensor);
}

}  // namespace

// A size that a file declares may be larger than any allocation.
// NOLINTNEXTLINE(bugprone-reserved-identifier): a name of the sanitizer
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream file(std::string(reinterpret_cast<const char*>(data), size));
  FletchingMessage message{};
  std::vector<Case> cases;
  if (guarded(&message, [&] { read_cases(file, cases); }) != 0) {
    require(message.text[0] != '\0', "a refusal has words");
  }
  for (const Case& read : cases) {
    const int code = guarded(&message, [&] { build(read); });
    require(code != EBADMSG, "a case is built as it is written");
    require((code == 0) == (message.text[0] == '\0'), "an error has words");
    account().live.clear();
  }
  return 0;
}
