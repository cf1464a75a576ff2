// SPDX-License-Identifier: Apache-2.0
//
// For each rule that the stream checker reports: a call that breaks it, and the closest valid call.
// Both kinds of streams use the same table.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../stream_support.hpp"
#include "findings.hpp"
#include "fletching/validate.h"

namespace fletching::testing {
namespace {

template <class Raw>
constexpr bool kIsDevice = std::is_same_v<Raw, ArrowDeviceArrayStream>;
template <class Raw>
using BatchOf = std::conditional_t<kIsDevice<Raw>, ArrowDeviceArray, ArrowArray>;

int validate(ArrowArrayStream& stream, const FletchingValidateOptions& options) {
  return FletchingValidateStream(&stream, &options, nullptr);
}
int validate(ArrowDeviceArrayStream& stream, const FletchingValidateOptions& options) {
  return FletchingValidateDeviceStream(&stream, &options, nullptr);
}

void release_of(ArrowArray& raw) {
  if (raw.release != nullptr) raw.release(&raw);
}
void release_of(ArrowDeviceArray& raw) { release_of(raw.array); }
void release_of(ArrowSchema& raw) {
  if (raw.release != nullptr) raw.release(&raw);
}

template <class Raw>
int pull(Raw& stream) {
  BatchOf<Raw> batch{};
  const int code = stream.get_next(&stream, &batch);
  release_of(batch);
  return code;
}
template <class Raw>
int pull_schema(Raw& stream) {
  ArrowSchema schema{};
  const int code = stream.get_schema(&stream, &schema);
  release_of(schema);
  return code;
}
template <class Raw>
void release_stream(Raw& stream) {
  if (stream.release != nullptr) stream.release(&stream);
}

/// A change to the producer, and the consumer's calls.
template <class Raw>
struct Side {
  std::function<void(Script&, Raw&)> prepare = nullptr;
  std::function<void(Raw&)> use = nullptr;
};
template <class Raw>
struct Case {
  std::string rule;  // without the prefix of the kind
  std::string rest;  // "error consumer get_next"
  Side<Raw> broken;
  Side<Raw> valid;
};

/// A get_next that always returns a batch.
template <class Raw>
int endless_next(Raw* self, BatchOf<Raw>* out) {
  auto& script = *static_cast<Script*>(self->private_data);
  if (++script.pulls == 1) return 0;
  script.at = 0;
  fill(out, script, Step{});
  return 0;
}
template <class Raw>
int nested_next(Raw* self, BatchOf<Raw>* /*out*/);

/// The wrapped stream that a producer calls back into.
template <class Raw>
Raw*& outer() {
  static Raw* stream = nullptr;
  return stream;
}
template <class Raw>
int nested_next(Raw* /*self*/, BatchOf<Raw>* /*out*/) {
  BatchOf<Raw> batch{};
  EXPECT_EQ(outer<Raw>()->get_next(outer<Raw>(), &batch), EINVAL);
  return 0;
}
template <class Raw>
void forgetful_release(Raw* self) {
  ++static_cast<Script*>(self->private_data)->released_streams;
}
template <class Raw>
int changing_schema(Raw* self, ArrowSchema* out) {
  auto& script = *static_cast<Script*>(self->private_data);
  out->format = ++script.pulls == 1 ? "i" : "l";
  out->release = release_base<ArrowSchema>;
  out->private_data = &script;
  ++script.live;
  return 0;
}

template <class Raw>
std::vector<Case<Raw>> cases() {
  const auto fails_with = [](int code, const char* text) {
    return [=](Script& script, Raw&) {
      script.steps = {{code}};
      script.text = text;
    };
  };
  const auto pull_once = [](Raw& stream) { pull(stream); };
  const auto pull_and_ask = [](Raw& stream) {
    pull(stream);
    stream.get_last_error(&stream);
  };
  const auto pull_twice = [](Raw& stream) {
    pull(stream);
    pull(stream);
  };
  const auto schema_twice = [](Raw& stream) {
    pull_schema(stream);
    pull_schema(stream);
  };
  return {
      {".callbacks-set",
       "error producer stream.get_last_error",
       {[](Script&, Raw& raw) { raw.get_last_error = nullptr; }},
       {}},
      {".callbacks-set",
       "error producer stream.get_schema",
       {[](Script&, Raw& raw) { raw.get_schema = nullptr; }},
       {}},
      {".callbacks-set",
       "error producer stream.get_next",
       {[](Script&, Raw& raw) { raw.get_next = nullptr; }},
       {}},
      {".get-schema-not-after-release",
       "error consumer get_schema",
       {.use =
            [](Raw& stream) {
              release_stream(stream);
              EXPECT_EQ(pull_schema(stream), EINVAL);
            }},
       {.use = [](Raw& stream) { pull_schema(stream); }}},
      {".get-next-not-after-release",
       "error consumer get_next",
       {.use =
            [](Raw& stream) {
              release_stream(stream);
              EXPECT_EQ(pull(stream), EINVAL);
            }},
       {.use = pull_once}},
      {".get-last-error-not-after-release",
       "error consumer get_last_error",
       {fails_with(EIO, "no"),
        [](Raw& stream) {
          pull(stream);
          release_stream(stream);
          EXPECT_EQ(stream.get_last_error(&stream), nullptr);
        }},
       {fails_with(EIO, "no"), pull_and_ask}},
      {".get-last-error-only-after-error",
       "error consumer get_last_error[0]",
       {.use = pull_and_ask},
       {fails_with(EIO, "no"), pull_and_ask}},
      {".get-last-error-only-after-error",
       "error consumer get_last_error[0]",
       {[](Script& script, Raw&) { script.steps = {{EIO}, {}}; },
        [=](Raw& stream) {
          pull(stream);
          pull_and_ask(stream);
        }},
       {[](Script& script, Raw&) { script.steps = {{}, {EIO}}; },
        [=](Raw& stream) {
          pull(stream);
          pull_and_ask(stream);
        }}},
      {".errno-codes",
       "warning producer get_next[0]",
       {fails_with(-1, "no"), pull_once},
       {fails_with(1, "no"), pull_once}},
      {".errno-codes",
       "warning producer get_next[0]",
       {fails_with(4096, "no"), pull_once},
       {fails_with(4095, "no"), pull_once}},
      {".error-text",
       "error producer get_last_error[0]",
       {fails_with(EIO, "caf\xE9"), pull_and_ask},
       {fails_with(EIO, "caf\xC3\xA9"), pull_and_ask}},
      {".error-text",
       "error producer get_last_error[0]",
       {fails_with(EIO, "\xC0\x80"), pull_and_ask},
       {fails_with(EIO, nullptr), pull_and_ask}},
      {".calls-serialized",
       "error consumer get_next",
       {[](Script&, Raw& raw) { raw.get_next = nested_next<Raw>; },
        [](Raw& stream) {
          outer<Raw>() = &stream;
          pull(stream);
        }},
       {.use = pull_twice}},
      {".private-data-untouched",
       "error consumer stream.private_data",
       {.use =
            [](Raw& stream) {
              void* const kept = std::exchange(stream.private_data, &stream);
              pull(stream);
              stream.private_data = kept;
            }},
       {.use =
            [](Raw& stream) {
              Raw moved = stream;
              stream.release = nullptr;
              pull(moved);
              stream = moved;
            }}},
      {".release-like-array",
       "error consumer release",
       {.use =
            [](Raw& stream) {
              Raw copy = stream;
              release_stream(stream);
              release_stream(copy);
              EXPECT_EQ(copy.release, nullptr);
            }},
       {.use = [](Raw& stream) { release_stream(stream); }}},
      {".release-like-array",
       "error producer release",
       {[](Script&, Raw& raw) { raw.release = forgetful_release<Raw>; }},
       {}},
      {"-result.schema-constant",
       "error producer get_schema[1].schema",
       {[](Script&, Raw& raw) { raw.get_schema = changing_schema<Raw>; }, schema_twice},
       {.use = schema_twice}},
      {"-result.end-is-released-array",
       "error producer get_next[1].array",
       {[](Script&, Raw& raw) { raw.get_next = endless_next<Raw>; }, pull_twice},
       {.use = pull_twice}},
      {"-result.released-independently",
       "error consumer get_next[0].array",
       {[](Script& script, Raw&) { script.steps = {{}}; },
        [](Raw& stream) {
          BatchOf<Raw> batch{};
          stream.get_next(&stream, &batch);
          EXPECT_EQ(FletchingValidateLive(), 1);
          release_of(batch);
        }},
       {[](Script& script, Raw&) { script.steps = {{}}; },
        [](Raw& stream) {
          pull(stream);
          EXPECT_EQ(FletchingValidateLive(), 0);
        }}},
  };
}

template <class Raw>
Findings run(const Side<Raw>& side, std::int32_t level = FLETCHING_VALIDATE_SHAPE) {
  Findings findings;
  Script script;
  Owner<Raw> owner = foreign_stream<Raw>(script);
  Raw stream = *owner;
  Raw* const moved_out = owner.get();
  moved_out->release = nullptr;
  if (side.prepare) side.prepare(script, stream);
  EXPECT_EQ(validate(stream, findings.options(level)), 0);
  if (side.use) side.use(stream);
  release_stream(stream);
  EXPECT_EQ(script.live, 0);
  EXPECT_EQ(script.released_streams, 1);
  return findings;
}

template <class Raw>
class ValidateStreamTest : public ::testing::Test {};
using Kinds = ::testing::Types<ArrowArrayStream, ArrowDeviceArrayStream>;
TYPED_TEST_SUITE(ValidateStreamTest, Kinds);

TYPED_TEST(ValidateStreamTest, ReportsEachBrokenRuleAndNoValidCall) {
  const std::string prefix = kIsDevice<TypeParam> ? "device-stream" : "stream";
  for (const Case<TypeParam>& given : cases<TypeParam>()) {
    SCOPED_TRACE(given.rule + " " + given.rest);
    const std::vector<std::string> expected{prefix + given.rule + " " + given.rest};
    EXPECT_EQ(run(given.broken).list, expected);
    EXPECT_EQ(run(given.valid).list, std::vector<std::string>{});
  }
}

TYPED_TEST(ValidateStreamTest, ReportsSecondReleaseOfBatchCopy) {
  const Findings findings = run<TypeParam>({[](Script& script, TypeParam&) { script.steps = {{}}; },
                                            [](TypeParam& stream) {
                                              BatchOf<TypeParam> batch{};
                                              stream.get_next(&stream, &batch);
                                              BatchOf<TypeParam> copy = batch;
                                              release_of(batch);
                                              release_of(copy);
                                            }});
  EXPECT_EQ(findings.list,
            std::vector<std::string>{"release.once error consumer get_next[0].array"});
}

TYPED_TEST(ValidateStreamTest, ReportsUnmarkedBatch) {
  static constexpr auto forgetful = [](ArrowArray* self) {
    --static_cast<Script*>(self->private_data)->live;
  };
  const Findings findings =
      run<TypeParam>({[](Script& script, TypeParam& raw) {
                        script.steps = {{}};
                        raw.get_next = [](TypeParam* self, BatchOf<TypeParam>* out) {
                          const int code = foreign_get_next<TypeParam>(self, out);
                          detail::base(*out).release = forgetful;
                          return code;
                        };
                      },
                      [](TypeParam& stream) { pull(stream); }});
  EXPECT_EQ(findings.list,
            std::vector<std::string>{"release.marks-released error producer get_next[0].array"});
}

TYPED_TEST(ValidateStreamTest, ReportsChangedPrivateDataAndReleasesStruct) {
  const Findings findings = run<TypeParam>({[](Script& script, TypeParam&) { script.steps = {{}}; },
                                            [](TypeParam& stream) {
                                              BatchOf<TypeParam> batch{};
                                              stream.get_next(&stream, &batch);
                                              detail::base(batch).private_data = &stream;
                                              release_of(batch);
                                              ArrowSchema schema{};
                                              stream.get_schema(&stream, &schema);
                                              schema.private_data = &stream;
                                              release_of(schema);
                                            }});
  const std::vector<std::string> expected{
      "array.private-data-untouched error consumer get_next[0].array",
      "schema.private-data-untouched error consumer get_schema[0].schema"};
  EXPECT_EQ(findings.list, expected);
}

TYPED_TEST(ValidateStreamTest, ReportsReleasedSchema) {
  const Findings findings =
      run<TypeParam>({[](Script& script, TypeParam&) { script.schema_released = true; },
                      [](TypeParam& stream) { pull_schema(stream); }});
  EXPECT_EQ(findings.list,
            std::vector<std::string>{"schema.release-set error producer get_schema[0].schema"});
}

TYPED_TEST(ValidateStreamTest, ComparesBatchWithSchemaAtLevelShapeOnly) {
  static const auto negative = [](TypeParam* self, BatchOf<TypeParam>* out) {
    const int code = foreign_get_next<TypeParam>(self, out);
    detail::base(*out).n_buffers = 3;
    return code;
  };
  const Side<TypeParam> side{[](Script& script, TypeParam& raw) {
                               script.steps = {{}};
                               raw.get_next = [](TypeParam* self, BatchOf<TypeParam>* out) {
                                 return negative(self, out);
                               };
                             },
                             [](TypeParam& stream) {
                               pull_schema(stream);
                               pull(stream);
                             }};
  const Findings shape = run(side);
  ASSERT_EQ(shape.list,
            std::vector<std::string>{"array.n-buffers-of-type error producer get_next[0].array"});
  EXPECT_EQ(shape.messages[0], "n_buffers is wrong: expected 2, got 3");
  EXPECT_EQ(shape.histories[0], "get_schema[0] returned 0\nget_next[0] returned 0");
  EXPECT_EQ(run(side, FLETCHING_VALIDATE_PROTOCOL).list, std::vector<std::string>{});
}

TEST(ValidateDeviceStreamTest, ReportsMissingDeviceType) {
  const auto set = [](ArrowDeviceType type) {
    return Side<ArrowDeviceArrayStream>{
        [type](Script&, ArrowDeviceArrayStream& raw) { raw.device_type = type; }};
  };
  EXPECT_EQ(
      run(set(0)).list,
      std::vector<std::string>{"device-stream.device-type-set error producer stream.device_type"});
  EXPECT_EQ(run(set(ARROW_DEVICE_CUDA)).list, std::vector<std::string>{});
}

TEST(ValidateDeviceStreamTest, ReportsBatchOnOtherDeviceType) {
  const auto step = [](ArrowDeviceType type) {
    return Side<ArrowDeviceArrayStream>{
        [type](Script& script, ArrowDeviceArrayStream&) { script.steps = {{0, type}}; },
        [](ArrowDeviceArrayStream& stream) { pull(stream); }};
  };
  EXPECT_EQ(
      run(step(ARROW_DEVICE_CUDA)).list,
      std::vector<std::string>{"device-stream.one-device-type warning producer get_next[0].array"});
  EXPECT_EQ(run(step(ARROW_DEVICE_CPU)).list, std::vector<std::string>{});
}

TYPED_TEST(ValidateStreamTest, RejectsBadArgumentsAndLeavesStreamUnchanged) {
  Findings findings;
  Script script;
  Owner<TypeParam> stream = foreign_stream<TypeParam>(script);
  const TypeParam before = *stream.get();
  FletchingValidateOptions options = findings.options(3);
  EXPECT_EQ(validate(*stream.get(), options), EINVAL);
  options = findings.options(0);
  options.size = 1;
  EXPECT_EQ(validate(*stream.get(), options), EINVAL);
  EXPECT_EQ(stream->get_next, before.get_next);
  EXPECT_EQ(stream->private_data, before.private_data);
  TypeParam released{};
  EXPECT_EQ(validate(released, findings.options(0)), EINVAL);
}

TEST(CheckArrayTest, CountsFindings) {
  Findings findings;
  Script script;
  Owner<ArrowArrayStream> stream = foreign_stream<ArrowArrayStream>(script);
  ArrowSchema schema{};
  ASSERT_EQ(stream->get_schema(stream.get(), &schema), 0);
  ArrowDeviceArray array{};
  fill(&array, script, Step{});
  const FletchingValidateOptions options = findings.options(FLETCHING_VALIDATE_SHAPE);
  std::int64_t count = -1;
  EXPECT_EQ(FletchingCheckDeviceArray(&schema, &array, &options, &count, nullptr), 0);
  EXPECT_EQ(count, 0);
  array.array.null_count = 2;
  EXPECT_EQ(FletchingCheckArray(&schema, &array.array, &options, &count, nullptr), 0);
  EXPECT_EQ(count, std::ssize(findings.list));
  ASSERT_FALSE(findings.list.empty());
  EXPECT_EQ(findings.list[0], "array.null-count-range error producer array");
  EXPECT_EQ(FletchingCheckArray(nullptr, &array.array, &options, &count, nullptr), EINVAL);
  release_of(array);
  release_of(schema);
}

}  // namespace
}  // namespace fletching::testing
