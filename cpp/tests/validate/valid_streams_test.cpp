// SPDX-License-Identifier: Apache-2.0
//
// Valid streams on threads have no findings; a released stream is still recognized much later.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../stream_support.hpp"
#include "findings.hpp"
#include "fletching/stream.hpp"
#include "fletching/validate.hpp"

namespace fletching::testing {
namespace {

/// Fails for every finding.
void expect_no_findings(const Findings& findings) {
  for (std::size_t i = 0; i < findings.list.size(); ++i) {
    ADD_FAILURE() << findings.list[i] << ": " << findings.messages[i];
  }
}

TEST(ValidStreamTest, AcceptsStreamsInThreads) {
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
  released_stream(script);  // drops the record of the first stream
  EXPECT_EQ(first.get_next(&first, &batch), EINVAL);
  EXPECT_EQ(findings.list.size(), 1U);
}

}  // namespace
}  // namespace fletching::testing
