// SPDX-License-Identifier: Apache-2.0
//
// Valid streams and consumers have no findings; a released stream is recognized long afterwards.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../stream_support.hpp"
#include "findings.hpp"
#include "fletching/stream.hpp"
#include "fletching/validate.hpp"
#include "producer.h"

namespace fletching::testing {
namespace {

/// Fails with every finding.
void expect_no_findings(const Findings& findings) {
  for (std::size_t i = 0; i < findings.list.size(); ++i) {
    ADD_FAILURE() << findings.list[i] << ": " << findings.messages[i];
  }
}

void verify_producer_stream(const char* name, std::int64_t fail_at, std::uint32_t stress) {
  constexpr std::int64_t kBatches = 3;
  SCOPED_TRACE(std::string(name) + ", fails at " + std::to_string(fail_at) + ", stress " +
               std::to_string(stress));
  Findings findings;
  findings.stress = stress;
  const FletchingValidateOptions options = findings.options(FLETCHING_VALIDATE_DATA);
  ArrowDeviceArrayStream stream{};
  FletchingMessage message{};
  ASSERT_EQ(FletchingProducerExportStream("cpu", name, kBatches, fail_at, &stream, &message), 0)
      << message.text;
  ASSERT_EQ(FletchingValidateDeviceStream(&stream, &options, &message), 0) << message.text;
  EXPECT_EQ(FletchingProducerVerifyStream("cpu", name, kBatches, fail_at, &stream, &message), 0)
      << message.text;
  EXPECT_EQ(FletchingValidateLive(), 0);
  expect_no_findings(findings);
}

TEST(ValidStreamTest, ReportsNothingForCatalogue) {
  ASSERT_GT(FletchingProducerCaseCount(), 0);
  for (std::int32_t i = 0; i < FletchingProducerCaseCount(); ++i) {
    for (const std::int64_t fail_at : {-1, 0, 2}) {
      for (const std::uint32_t stress : {0U, kAllStress}) {
        verify_producer_stream(FletchingProducerCaseName(i), fail_at, stress);
      }
    }
  }
}

void verify_reader(std::uint32_t stress) {
  Findings findings;
  findings.stress = stress;
  Script script;
  script.steps = {{}, {}, {EIO}};
  const FletchingValidateOptions options = findings.options(FLETCHING_VALIDATE_SHAPE);
  {
    auto stream = foreign_stream<ArrowArrayStream>(script);
    ASSERT_EQ(FletchingValidateStream(stream.get(), &options, nullptr), 0);
    ArrayStreamReader reader(std::move(stream));
    ASSERT_TRUE(reader.schema().ok());
    EXPECT_TRUE(next_of(reader).ok());
    EXPECT_TRUE(next_of(reader).ok());
    EXPECT_EQ(next_of(reader).error().code(), EIO);
  }
  expect_clean(script);
  expect_no_findings(findings);
}

TEST(ValidStreamTest, ReportsNothingForStreamReader) {
  for (const std::uint32_t stress : kStress) verify_reader(stress);
}

TEST(ValidStreamTest, ReportsNothingForStreamsInThreads) {
  std::vector<std::thread> threads;
  std::vector<Findings> findings(4);
  threads.reserve(findings.size());
  for (Findings& own : findings) {
    threads.emplace_back([&own] {
      for (int round = 0; round < 100; ++round) {
        Script script;
        script.steps = {{}, {}};
        auto stream = foreign_stream<ArrowArrayStream>(script);
        const FletchingValidateOptions options = own.options(FLETCHING_VALIDATE_SHAPE);
        EXPECT_EQ(FletchingValidateStream(stream.get(), &options, nullptr), 0);
        ArrayStreamReader reader(std::move(stream));
        while (auto batch = reader.next()) EXPECT_TRUE(batch->ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Findings& own : findings) expect_no_findings(own);
}

// --- fletching/validate.hpp ---

template <class Raw>
void validate_owner() {
  Script script;
  script.steps = {{}, {}};
  std::vector<std::string> rules;
  const auto report = [&](const FletchingFinding& finding) { rules.emplace_back(finding.rule); };
  {
    Result<Owner<Raw>> stream =
        validate(foreign_stream<Raw>(script), report, {.stress = FLETCHING_STRESS_PRIVATE_DATA});
    ASSERT_TRUE(stream.ok()) << stream.error().message();
    EXPECT_NE((*stream)->private_data, &script);
    EXPECT_EQ(rules, std::vector<std::string>{});
    (*stream)->get_last_error(stream->get());
  }
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_TRUE(rules[0].ends_with("stream.get-last-error-only-after-error")) << rules[0];
  EXPECT_EQ(script.released_streams, 1);
  EXPECT_EQ(validate(Owner<Raw>(), report).error().code(), EINVAL);
  EXPECT_EQ(validate(foreign_stream<Raw>(script), report, {.level = 3}).error().code(), EINVAL);
  EXPECT_EQ(script.released_streams, 2) << "an error releases the stream";
}

TEST(ValidateOwnerTest, ReportsToCallable) {
  validate_owner<ArrowArrayStream>();
  validate_owner<ArrowDeviceArrayStream>();
}

TEST(ReleasedStreamTest, IsRecognizedUntilManyOthersAreReleased) {
  constexpr int kKept = 4096;
  Findings findings;
  const FletchingValidateOptions options = findings.options(FLETCHING_VALIDATE_PROTOCOL);
  const auto released_stream = [&](Script& script) {
    auto owner = foreign_stream<ArrowArrayStream>(script);
    ArrowArrayStream raw = *owner;
    ArrowArrayStream* const moved_out = owner.get();
    moved_out->release = nullptr;
    EXPECT_EQ(FletchingValidateStream(&raw, &options, nullptr), 0);
    raw.release(&raw);
    return raw;
  };
  Script script;
  ArrowArrayStream first = released_stream(script);
  for (int i = 0; i < kKept - 1; ++i) released_stream(script);
  ArrowArray batch{};
  EXPECT_EQ(first.get_next(&first, &batch), EINVAL);
  EXPECT_EQ(findings.list,
            std::vector<std::string>{"stream.get-next-not-after-release error consumer get_next"});
  released_stream(script);  // drops the record of the first
  EXPECT_EQ(first.get_next(&first, &batch), EINVAL);
  EXPECT_EQ(findings.list.size(), 1U);
}

}  // namespace
}  // namespace fletching::testing
