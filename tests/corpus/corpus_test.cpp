// Runs the corpus through the C++ library, and checks that the record detects deliberate faults.
#include "corpus.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fletching/check_array.hpp"
#include "fletching/check_data.hpp"
#include "fletching/dlpack_import.hpp"
#include "fletching/metadata.hpp"
#include "fletching/owner.hpp"
#include "fletching/stream.hpp"

namespace fletching::testing {
namespace {

struct Case {
  std::string name;
  std::int32_t index;

  [[nodiscard]] const char* c_str() const noexcept { return name.c_str(); }
  [[nodiscard]] bool is_accepted() const noexcept {
    return FletchingCorpusVerdict(index) == kFletchingCorpusAccept;
  }
  [[nodiscard]] std::string text(const char* key) const {
    const char* found = FletchingCorpusText(index, key);
    return found == nullptr ? "" : found;
  }
};

std::vector<Case> cases(std::int32_t kind) {
  std::vector<Case> found;
  for (std::int32_t i = 0; i < FletchingCorpusCount(); ++i) {
    if (FletchingCorpusKind(i) == kind) found.push_back({FletchingCorpusName(i), i});
  }
  EXPECT_FALSE(found.empty());
  return found;
}

void finish(const Case& played) {
  FletchingMessage message;
  EXPECT_EQ(FletchingCorpusFinish(&message), 0) << played.name << ": " << message.text;
}

ArrowSchema schema_of(const Case& played) {
  ArrowSchema raw;
  FletchingMessage message;
  EXPECT_EQ(FletchingCorpusExportSchema(played.c_str(), &raw, &message), 0) << message.text;
  return raw;
}

ArrowDeviceArray array_of(const Case& played) {
  ArrowDeviceArray raw;
  FletchingMessage message;
  EXPECT_EQ(FletchingCorpusExportArray(played.c_str(), &raw, &message), 0) << message.text;
  return raw;
}

/// The rule that a schema violates according to the format parser; "" if it is valid.
std::string broken_rule(const ArrowSchema& schema) {
  const Result<Format> format = parse_format(schema.format);
  if (!format) return "format.known";
  if (schema.n_children != 0 && schema.children == nullptr) {
    return "schema.children-null-only-when-none";
  }
  if (schema.metadata == nullptr) return "";
  const Result<MetadataView> metadata = MetadataView::read(schema.metadata);
  return metadata.has_value() ? "" : metadata.error().message();
}

TEST(Corpus, SchemasHaveExpectedVerdict) {
  for (const Case& played : cases(kFletchingCorpusSchema)) {
    ArrowSchema raw = schema_of(played);
    Schema schema(&raw);
    EXPECT_EQ(broken_rule(*schema.get()).empty(), played.is_accepted()) << played.name;
    FletchingMessage message;
    EXPECT_EQ(FletchingCorpusCompareSchema(played.c_str(), schema.get(), &message), 0)
        << played.name << ": " << message.text;
    schema = Schema();
    finish(played);
  }
}

void expect_verdict(const Case& played, const Result<ArrayFindings>& found, bool is_accepted) {
  ASSERT_TRUE(found.ok()) << played.name << ": " << found.error().message();
  EXPECT_EQ(found->list.empty(), is_accepted) << played.name;
  if (found->list.empty()) return;
  EXPECT_EQ(found->list.front().rule, played.text("rule"))
      << played.name << ": " << found->list.front().message;
}

TEST(Corpus, ArraysHaveExpectedVerdictAndRule) {
  for (const Case& played : cases(kFletchingCorpusArray)) {
    ArrowSchema raw_schema = schema_of(played);
    ArrowDeviceArray raw = array_of(played);
    Schema schema(&raw_schema);
    DeviceArray array(&raw);
    const bool is_of_data = played.text("level") == "data";
    expect_verdict(played, check_array(*schema, *array), played.is_accepted() || is_of_data);
    const Result<ArrayFindings> found = check_data(*schema, *array);
    expect_verdict(played, found, played.is_accepted());
    EXPECT_TRUE(!is_of_data || found->list.size() == 1U) << played.name;
    FletchingMessage message;
    EXPECT_EQ(FletchingCorpusCompareArray(played.c_str(), array.get(), &message), 0)
        << played.name << ": " << message.text;
    schema = Schema();
    array = DeviceArray();
    finish(played);
  }
}

TEST(Corpus, StreamsReturnExpectedBatchesAndError) {
  for (const Case& played : cases(kFletchingCorpusStream)) {
    ArrowArrayStream raw;
    ASSERT_EQ(FletchingCorpusExportStream(played.c_str(), &raw, nullptr), 0);
    int batches = 0;
    int error = 0;
    {
      StreamReader reader{ArrayStream(&raw)};
      while (std::optional<Result<Array>> batch = reader.next()) {
        if (*batch) ++batches;
        if (!*batch) error = batch->error().code();
      }
    }
    EXPECT_EQ(batches, FletchingCorpusBatches(played.index)) << played.name;
    EXPECT_EQ(error, FletchingCorpusError(played.index)) << played.name;
    finish(played);
  }
}

template <class Managed, class Tensor>
void import_tensors(std::int32_t kind, int (*make)(const char*, Managed**, FletchingMessage*)) {
  for (const Case& played : cases(kind)) {
    Managed* raw = nullptr;
    ASSERT_EQ(make(played.c_str(), &raw, nullptr), 0);
    EXPECT_EQ(from_dlpack(Tensor(raw)).has_value(), played.is_accepted()) << played.name;
    finish(played);
  }
}

TEST(Corpus, TensorsHaveExpectedVerdict) {
  import_tensors<DLManagedTensorVersioned, DlpackTensor>(kFletchingCorpusTensor,
                                                         &FletchingCorpusExportTensor);
  import_tensors<DLManagedTensor, LegacyDlpackTensor>(kFletchingCorpusLegacyTensor,
                                                      &FletchingCorpusExportLegacyTensor);
}

// --- The record detects faults ---

std::string fault_of(const Case& played, void (*spoil)(ArrowDeviceArray*)) {
  ArrowDeviceArray raw = array_of(played);
  spoil(&raw);
  FletchingMessage message;
  EXPECT_NE(FletchingCorpusFinish(&message), 0);
  return message.text;
}

TEST(Corpus, DetectsReleaseFaults) {
  const Case played = cases(kFletchingCorpusArray).front();
  EXPECT_EQ(fault_of(played, [](ArrowDeviceArray*) {}),
            "1 structs were not released, first a ArrowArray");
  EXPECT_EQ(fault_of(played,
                     [](ArrowDeviceArray* raw) {
                       ArrowDeviceArray copy = *raw;
                       raw->array.release(&raw->array);
                       copy.array.release(&copy.array);
                     }),
            "ArrowArray.release: called twice, or on a struct that was changed");
}

TEST(Corpus, DetectsChangedField) {
  const Case played = cases(kFletchingCorpusArray).front();
  ArrowDeviceArray raw = array_of(played);
  FletchingMessage message;
  ++raw.array.length;
  EXPECT_NE(FletchingCorpusCompareArray(played.c_str(), &raw, &message), 0);
  EXPECT_STREQ(message.text, "array.length: expected 5, got 6");
  --raw.array.length;
  const void* zero = nullptr;
  raw.array.buffers[1] = zero;
  EXPECT_NE(FletchingCorpusCompareArray(played.c_str(), &raw, &message), 0);
  EXPECT_EQ(std::string(message.text).substr(0, 14), "array.buffers:") << message.text;
  raw.array.release(&raw.array);
  finish(played);
}

TEST(Corpus, DetectsCallAfterError) {
  ArrowArrayStream raw;
  ASSERT_EQ(FletchingCorpusExportStream("stream.array-after-error", &raw, nullptr), 0);
  ArrowArray batch;
  EXPECT_EQ(raw.get_next(&raw, &batch), 5);
  EXPECT_EQ(raw.get_next(&raw, &batch), 0);
  batch.release(&batch);
  raw.release(&raw);
  FletchingMessage message;
  EXPECT_NE(FletchingCorpusFinish(&message), 0);
  EXPECT_STREQ(message.text, "get_next: called after it has failed");
}

TEST(Corpus, RejectsUnknownCase) {
  ArrowSchema raw;
  FletchingMessage message;
  EXPECT_NE(FletchingCorpusExportSchema("no.such-case", &raw, &message), 0);
  EXPECT_STREQ(message.text, "no case no.such-case");
  EXPECT_EQ(FletchingCorpusName(-1), nullptr);
  EXPECT_EQ(FletchingCorpusName(FletchingCorpusCount()), nullptr);
}

}  // namespace
}  // namespace fletching::testing
