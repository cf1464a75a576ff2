// SPDX-License-Identifier: Apache-2.0
//
// The stream reader with a foreign producer that follows a script.
#include "fletching/stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"
#include "stream_support.hpp"

namespace fletching::testing {
namespace {

using Plain = ArrowArrayStream;
using Device = ArrowDeviceArrayStream;

static_assert(std::ranges::input_range<ArrayStreamReader>);
static_assert(std::ranges::input_range<DeviceArrayStreamReader>);
static_assert(!std::ranges::forward_range<DeviceArrayStreamReader>);
static_assert(std::is_nothrow_move_constructible_v<DeviceArrayStreamReader>);
static_assert(!std::is_copy_constructible_v<DeviceArrayStreamReader>);

template <class Raw>
StreamReader<Raw> reader_of(Script& script, Options options = {}) {
  return StreamReader<Raw>(foreign_stream<Raw>(script), std::move(options));
}

// --- Requirements of both kinds of stream ---

template <class Raw>
void keeps_errno(int code, int expected) {
  Script script{.steps{{}, {.code = code}, {}}};
  {
    auto reader = reader_of<Raw>(script);
    int elements = 0;
    for (auto& batch : reader) {
      ++elements;
      if (elements == 1) {
        EXPECT_TRUE(batch.ok());
        continue;
      }
      ASSERT_FALSE(batch.ok());
      EXPECT_EQ(batch.error().code(), expected);
      EXPECT_EQ(batch.error().message(),
                code > 0 ? "the foreign text" : "the foreign text (code -1)");
    }
    EXPECT_EQ(elements, 2);  // the error comes last
    // At the end: no more elements and no more callbacks.
    EXPECT_FALSE(reader.next().has_value());
    EXPECT_EQ(reader.begin(), reader.end());
    EXPECT_EQ(reader.schema().error().code(), expected);
    EXPECT_EQ(script.pulls, 2);
    EXPECT_EQ(script.asked_for_text, 1);
  }
  expect_clean(script);
}
TEST(Rules, StreamErrnoRead) {
  keeps_errno<Plain>(ENOSPC, ENOSPC);
  keeps_errno<Device>(ENOSPC, ENOSPC);
  keeps_errno<Plain>(-1, EIO);  // not an errno value, but still an error
  keeps_errno<Device>(-1, EIO);
}

template <class Raw, class Read>
void not_after_release(const Read& read) {
  Script script{.steps{{}}};
  auto reader = reader_of<Raw>(script);
  reader.release();
  EXPECT_EQ(read(reader), EINVAL);
  EXPECT_EQ(script.asked_for_text, 0);
  expect_clean(script);  // the script records calls after release
}
const auto kReadSchema = [](auto& reader) { return code_of(reader.schema()); };
const auto kReadNext = [](auto& reader) { return code_of(next_of(reader)); };
TEST(Rules, StreamGetSchemaNotAfterRelease) { not_after_release<Plain>(kReadSchema); }
TEST(Rules, DeviceStreamGetSchemaNotAfterRelease) { not_after_release<Device>(kReadSchema); }
TEST(Rules, StreamGetNextNotAfterRelease) { not_after_release<Plain>(kReadNext); }
TEST(Rules, DeviceStreamGetNextNotAfterRelease) { not_after_release<Device>(kReadNext); }
TEST(Rules, StreamGetLastErrorNotAfterRelease) { not_after_release<Plain>(kReadNext); }
TEST(Rules, DeviceStreamGetLastErrorNotAfterRelease) { not_after_release<Device>(kReadNext); }

template <class Raw>
void calls_one_at_a_time() {
  Script script{.steps{{}, {.code = EIO}}};
  {
    auto reader = reader_of<Raw>(script);
    for (auto& batch : reader) EXPECT_EQ(code_of(batch), script.failed ? EIO : 0);
    EXPECT_EQ(script.pulls, 2);
  }
  expect_clean(script);  // the script records concurrent calls
}
TEST(Rules, StreamCallsSerialized) { calls_one_at_a_time<Plain>(); }
TEST(Rules, DeviceStreamCallsSerialized) { calls_one_at_a_time<Device>(); }

// --- Device types ---

struct WarningLog {
  std::vector<std::string> rules;
  Options options{.on_warning = [this](const Warning& warning) {
    EXPECT_FALSE(warning.message.empty());
    rules.emplace_back(warning.rule);
  }};
};

Script device_script(ArrowDeviceType stream, ArrowDeviceType batch) {
  return {.steps{{.device_type = batch}}, .device_type = stream};
}

TEST(Rules, DeviceStreamOneDeviceType) {
  WarningLog heard;
  Script script = device_script(ARROW_DEVICE_CPU, ARROW_DEVICE_CUDA_HOST);
  EXPECT_EQ(code_of(next_of(reader_of<Device>(script, heard.options))), 0);
  EXPECT_EQ(heard.rules, std::vector<std::string>{"device-stream.one-device-type"});
  expect_clean(script);

  script = device_script(ARROW_DEVICE_CPU, ARROW_DEVICE_CUDA_HOST);
  const auto refused = next_of(reader_of<Device>(script, {.strict = true}));
  ASSERT_EQ(code_of(refused), EINVAL);
  EXPECT_EQ(refused.error().message(),
            "batch: device_type differs from the stream's: expected cpu, got cuda_host (rule "
            "device-stream.one-device-type)");
  expect_clean(script);

  script = device_script(ARROW_DEVICE_CUDA, ARROW_DEVICE_CUDA);
  EXPECT_EQ(code_of(next_of(reader_of<Device>(script, {.strict = true}))), 0);
}

TEST(Rules, DeviceStreamResultAccessible) {
  const std::pair<ArrowDeviceType, ArrowDeviceType> cases[] = {
      {ARROW_DEVICE_CPU, ARROW_DEVICE_CUDA},           // not readable on the CPU
      {ARROW_DEVICE_CUDA, ARROW_DEVICE_CPU},           //
      {ARROW_DEVICE_CUDA_MANAGED, ARROW_DEVICE_CUDA},  // the consumer may be the CPU
      {ARROW_DEVICE_ROCM, ARROW_DEVICE_CUDA_HOST},     //
      {ARROW_DEVICE_VPI, ARROW_DEVICE_CPU},            // unknown accessibility
      {9999, ARROW_DEVICE_CPU},
      {ARROW_DEVICE_CPU, 9999},
  };
  for (const auto& [stream, batch] : cases) {
    WarningLog heard;
    Script script = device_script(stream, batch);
    {
      auto reader = reader_of<Device>(script, heard.options);
      EXPECT_EQ(code_of(next_of(reader)), EINVAL) << stream << ' ' << batch;
      EXPECT_FALSE(reader.next().has_value());
    }
    EXPECT_TRUE(heard.rules.empty());
    expect_clean(script);
  }
  Script script = device_script(ARROW_DEVICE_CUDA, ARROW_DEVICE_CUDA_MANAGED);
  EXPECT_EQ(code_of(next_of(reader_of<Device>(script))), 0);
}

TEST(Rules, DeviceStreamDeviceTypeSet) {
  Script script = device_script(0, 0);
  EXPECT_EQ(code_of(next_of(reader_of<Device>(script))), EINVAL);
  expect_clean(script);
}

TEST(Rules, DeviceArrayReservedZero) {
  WarningLog heard;
  Script script{.steps{{.reserved = 7}}};
  EXPECT_EQ(code_of(next_of(reader_of<Device>(script, heard.options))), 0);
  EXPECT_EQ(heard.rules, std::vector<std::string>{"device-array.reserved-zero"});
  expect_clean(script);

  script = {.steps{{.reserved = 7}}};
  EXPECT_EQ(code_of(next_of(reader_of<Device>(script, {.strict = true}))), EINVAL);
  expect_clean(script);
}

// --- Batches against the schema ---

template <class Raw>
Owner<Raw> with_next(Script& script,
                     int (*get_next)(Raw*, typename StreamReader<Raw>::batch_type::raw_type*)) {
  Owner<Raw> stream = foreign_stream<Raw>(script);
  stream->get_next = get_next;
  return stream;
}

template <class Raw>
void strict_compares_batches() {
  using RawBatch = typename StreamReader<Raw>::batch_type::raw_type;
  const auto spoiled = [](Raw* self, RawBatch* out) {
    const int code = foreign_get_next(self, out);
    detail::base(*out).n_buffers = detail::base(*out).length == 2 ? 3 : 2;
    return code;
  };
  for (const bool strict : {false, true}) {
    Script script{.steps{{}, {}, {}}};
    {
      StreamReader<Raw> reader(with_next<Raw>(script, spoiled), {.strict = strict});
      EXPECT_EQ(code_of(next_of(reader)), 0);
      const auto second = next_of(reader);
      ASSERT_EQ(code_of(second), strict ? EINVAL : 0);
      if (strict) {
        const std::string rule(detail::StreamTraits<Raw>::kSchemaConstant);
        EXPECT_EQ(second.error().message(),
                  "batch: differs from the stream's schema (rule " + rule +
                      "): array: n_buffers is wrong: expected 2, got 3 (rule "
                      "array.n-buffers-of-type)");
      }
    }
    expect_clean(script);
  }
}
TEST(StreamReader, StrictComparesBatchesWithSchema) {
  strict_compares_batches<Plain>();
  strict_compares_batches<Device>();
}

/// If the callback released the stream, the rest of `text` is not read.
template <class Raw>
void release_in_callback_leaves_no_text() {
  using RawBatch = typename StreamReader<Raw>::batch_type::raw_type;
  Script script{.steps{{}}};
  {
    StreamReader<Raw> reader(with_next<Raw>(script, [](Raw* self, RawBatch*) {
      self->release(self);
      return EIO;
    }));
    const auto failed = next_of(reader);
    EXPECT_EQ(code_of(failed), EIO);
    EXPECT_EQ(reader.schema().error().code(), EIO);
  }
  EXPECT_EQ(script.asked_for_text, 0);
  expect_clean(script);
}
TEST(StreamReader, CallbackReleasingStreamLeavesNoErrorText) {
  release_in_callback_leaves_no_text<Plain>();
  release_in_callback_leaves_no_text<Device>();
}

template <class Raw>
void strict_compares_later_schema() {
  static int calls = 0;
  for (const bool strict : {false, true}) {
    Script script{.steps{{}, {}}};
    {
      calls = 0;
      Owner<Raw> stream = foreign_stream<Raw>(script);
      stream->get_schema = [](Raw* self, ArrowSchema* out) {
        const int code = foreign_get_schema(self, out);
        if (++calls > 2) out->format = "f";
        return code;
      };
      StreamReader<Raw> reader(std::move(stream), {.strict = strict});
      ASSERT_TRUE(reader.schema());
      ASSERT_TRUE(next_of(reader));
      if (!strict) calls = 2;
      const Result<Schema> later = reader.schema();
      ASSERT_EQ(code_of(later), strict ? EINVAL : 0);
      if (!strict) continue;
      EXPECT_EQ(later.error().message(),
                "schema: differs from the first schema of the stream (rule " +
                    std::string(detail::StreamTraits<Raw>::kSchemaConstant) +
                    "): expected format \"i\", got \"f\"");
      EXPECT_EQ(code_of(next_of(reader)), EINVAL);
    }
    expect_clean(script);
  }
}
TEST(StreamReader, StrictComparesLaterSchemaWithFirst) {
  strict_compares_later_schema<Plain>();
  strict_compares_later_schema<Device>();
}

TEST(StreamReader, StrictReadsSchemaFirst) {
  Script script{.steps{{}}, .schema_code = ENOSPC};
  {
    auto reader = reader_of<Device>(script, {.strict = true});
    EXPECT_EQ(code_of(next_of(reader)), ENOSPC);
    EXPECT_EQ(script.pulls, 0);
  }
  expect_clean(script);
}

TEST(StreamReader, KeepsUnknownDeviceType) {
  Script script = device_script(9999, 9999);
  auto reader = reader_of<Device>(script, {.strict = true});
  EXPECT_EQ(reader.device_type(), 9999);
  EXPECT_EQ((*next_of(reader))->device_type, 9999);
}

TEST(StreamReader, ThrowingWarningHandlerReturnsError) {
  Script script{.steps{{.reserved = 7}, {}}};
  auto reader = reader_of<Device>(
      script, {.on_warning = [](const Warning&) { throw std::runtime_error("enough"); }});
  const auto batch = next_of(reader);
  ASSERT_EQ(code_of(batch), EIO);
  EXPECT_EQ(batch.error().message(), "enough");
  EXPECT_EQ(script.live, 0);
}

// --- As a range ---

TEST(StreamReader, WorksWithViews) {
  Script script{.steps{{}, {}, {}, {}}};
  {
    std::vector<std::int64_t> lengths;
    auto big = reader_of<Device>(script) |
               std::views::filter([](const auto& batch) { return length_of(*batch) % 2 == 0; }) |
               std::views::transform([](auto& batch) { return length_of(*batch); });
    for (const std::int64_t length : big) lengths.push_back(length);
    EXPECT_EQ(lengths, (std::vector<std::int64_t>{2, 4}));
  }
  expect_clean(script);
}

TEST(StreamReader, MovedOutBatchIsNotEnd) {
  Script script{.steps{{}, {}}};
  auto reader = reader_of<Device>(script);
  auto it = reader.begin();
  const Result<DeviceArray> first = std::move(*it);
  EXPECT_FALSE(it == reader.end());
  ++it;
  EXPECT_EQ(length_of(**it), 2);
  ++it;
  EXPECT_TRUE(it == reader.end());
}

/// The codes of all elements; 0 for a batch.
const auto kByRange = [](auto& reader) {
  std::vector<int> codes;
  for (const auto& batch : reader) codes.push_back(code_of(batch));
  return codes;
};
const auto kByNext = [](auto& reader) {
  std::vector<int> codes;
  while (const auto batch = reader.next()) codes.push_back(code_of(*batch));
  return codes;
};

// Neither loop may end as if the stream were empty.
template <class Raw, class Loop>
void returns_schema_error(const Loop& loop) {
  Script script{.steps{{}}, .schema_code = ENOMEM};
  {
    auto reader = reader_of<Raw>(script);
    EXPECT_EQ(reader.schema().error().message(), "the foreign text");
    EXPECT_EQ(loop(reader), std::vector<int>{ENOMEM});
    EXPECT_EQ(loop(reader), std::vector<int>{}) << "once";
    EXPECT_EQ(code_of(reader.schema()), ENOMEM);
    EXPECT_EQ(script.pulls, 0);
  }
  expect_clean(script);
}
TEST(StreamReader, SchemaErrorIsElement) {
  returns_schema_error<Plain>(kByRange);
  returns_schema_error<Device>(kByRange);
  returns_schema_error<Plain>(kByNext);
  returns_schema_error<Device>(kByNext);
}

TEST(StreamReader, LoopEndsAfterLastBatchOrError) {
  const auto codes_of = [](std::vector<Step> steps, const auto& loop) {
    Script script{.steps = std::move(steps)};
    auto reader = reader_of<Device>(script);
    auto codes = loop(reader);
    reader.release();
    expect_clean(script);
    return codes;
  };
  const auto both_are = [&](const std::vector<Step>& steps, const std::vector<int>& codes) {
    EXPECT_EQ(codes_of(steps, kByRange), codes);
    EXPECT_EQ(codes_of(steps, kByNext), codes);
  };
  both_are({}, {});
  both_are({{}, {}}, {0, 0});
  both_are({{}, {.code = ENOSPC}, {}}, {0, ENOSPC});
}

TEST(StreamReader, ReleasedReaderHasNoDeviceType) {
  Script script = device_script(ARROW_DEVICE_CUDA, ARROW_DEVICE_CUDA);
  auto reader = reader_of<Device>(script);
  reader.release();
  EXPECT_EQ(reader.device_type(), 0);
  expect_clean(script);
}

TEST(StreamReader, RejectsStreamWithoutSchema) {
  Script none{.schema_released = true};
  EXPECT_EQ(code_of(reader_of<Plain>(none).schema()), EINVAL);
}

TEST(StreamReader, EscapesForeignErrorText) {
  Script script{.steps{{.code = EIO}}, .text = "caf\xC3\xA9 \xFF\x1B["};
  EXPECT_EQ(next_of(reader_of<Plain>(script)).error().message(), "caf\xC3\xA9 \\xff\\x1b[");
}

TEST(StreamReader, SurvivesAllocationFailures) {
  fail_each_allocation([](Injection& inject) {
    Script script{.steps{{}, {.code = ENOSPC}}, .text = "a text too long for the string itself"};
    {
      DeviceArrayStreamReader reader(foreign_stream<Device>(script));
      EXPECT_EQ(code_of(next_of(reader)), 0);
      // given_text of the script allocates too; in plain C that would not throw.
      script.given_text.reserve(64);
      const int code = inject([&] { return code_of(next_of(reader)); });
      EXPECT_TRUE(code == ENOSPC || (inject.fired() && code == ENOMEM)) << code;
      EXPECT_FALSE(reader.next().has_value());
      EXPECT_EQ(code_of(reader.schema()), ENOSPC);
      EXPECT_EQ(script.pulls, 2);
    }
    expect_clean(script);
  });
  fail_each_allocation([](Injection& inject) {
    Script script{.steps{{.reserved = 1}}};
    {
      DeviceArrayStreamReader reader(foreign_stream<Device>(script), {.strict = true});
      const int code = inject([&] { return code_of(next_of(reader)); });
      EXPECT_EQ(code, inject.fired() ? ENOMEM : EINVAL);
    }
    expect_clean(script);
  });
}

}  // namespace
}  // namespace fletching::testing
