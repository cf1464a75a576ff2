// SPDX-License-Identifier: Apache-2.0
//
// Streams made of ranges and callables, used through their C callbacks and through the reader.
#include "fletching/stream_producer.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"
#include "fletching/array_builder.hpp"
#include "fletching/schema_builder.hpp"
#include "stream_support.hpp"

namespace fletching::testing {
namespace {

using Plain = ArrowArrayStream;
using Device = ArrowDeviceArrayStream;

/// The counted schemas and batches of one test.
struct Parts {
  Script script{};

  Schema schema() {
    Schema schema;
    schema->format = "i";
    schema->name = "values";
    schema->release = release_base<ArrowSchema>;
    schema->private_data = &script;
    ++script.live;
    return schema;
  }
  template <class Batch>
  Batch batch(std::int64_t length, ArrowDeviceType type = ARROW_DEVICE_CPU) {
    Batch batch;
    script.at = static_cast<std::size_t>(length - 1);
    fill(batch.out(), script, {.device_type = type});
    return batch;
  }
  ~Parts() { EXPECT_EQ(script.live, 0); }
};

template <class Raw>
using BatchOf = typename StreamReader<Raw>::batch_type;

template <class Raw, class Content>
Owner<Raw> stream_of(Parts& parts, Content content) {
  if constexpr (std::is_same_v<Raw, Device>) {
    return make_device_stream(parts.schema(), ARROW_DEVICE_CPU, std::move(content)).value();
  } else {
    return make_array_stream(parts.schema(), std::move(content)).value();
  }
}

/// Returns batches of length 1 to `count`, then the result of `last`.
template <class Raw, class Last>
auto counting(Parts& parts, std::int64_t count, Last last) {
  return [&parts, count, last, n = std::int64_t{0}]() mutable -> Result<BatchOf<Raw>> {
    if (n == count) return last();
    return parts.batch<BatchOf<Raw>>(++n);
  };
}

/// Calls get_next and checks the batch's values against the stream's schema.
template <class Raw>
int get_next(Owner<Raw>& stream, BatchOf<Raw>& out) {
  const int code = stream->get_next(stream.get(), out.out());
  if (code == 0 && !out.is_released()) {
    Schema schema;
    EXPECT_EQ(stream->get_schema(stream.get(), schema.out()), 0);
    expect_whole(schema, out);
  }
  return code;
}

// --- Rules ---

template <class Raw>
void ends_with_a_released_array() {
  Parts parts;
  int calls = 0;
  auto stream = stream_of<Raw>(parts, counting<Raw>(parts, 2, [&] {
                                 ++calls;
                                 return BatchOf<Raw>();
                               }));
  BatchOf<Raw> batch;
  for (const std::int64_t length : {1, 2}) {
    ASSERT_EQ(get_next(stream, batch), 0);
    EXPECT_EQ(length_of(batch), length);
  }
  for (int again = 0; again < 3; ++again) {
    ASSERT_EQ(get_next(stream, batch), 0);
    EXPECT_TRUE(batch.is_released());
  }
  EXPECT_EQ(calls, 1);
}
TEST(Rules, StreamResultEndIsReleasedArray) { ends_with_a_released_array<Plain>(); }
TEST(Rules, DeviceStreamResultEndIsReleasedArray) { ends_with_a_released_array<Device>(); }

template <class Raw, class Thrown>
int code_when_thrown(const Thrown& thrown) {
  Parts parts;
  int calls = 0;
  auto stream = stream_of<Raw>(parts, [&]() -> Result<BatchOf<Raw>> {
    ++calls;
    throw thrown;
  });
  BatchOf<Raw> batch;
  const int code = get_next(stream, batch);
  EXPECT_TRUE(batch.is_released());
  EXPECT_EQ(get_next(stream, batch), code);
  EXPECT_EQ(calls, 1);  // not called again after a failure
  return code;
}
template <class Raw>
void returns_errno_codes() {
  const std::system_error no_space(ENOSPC, std::generic_category(), "disk");
  EXPECT_EQ(code_when_thrown<Raw>(no_space), ENOSPC);
  EXPECT_EQ(code_when_thrown<Raw>(std::bad_alloc()), ENOMEM);
  EXPECT_EQ(code_when_thrown<Raw>(std::runtime_error("words")), EIO);
  EXPECT_EQ(code_when_thrown<Raw>(17), EIO);

  Parts parts;
  const auto fails = [] { return Result<BatchOf<Raw>>(Error(-3, "no errno value")); };
  auto stream = stream_of<Raw>(parts, counting<Raw>(parts, 0, fails));
  BatchOf<Raw> batch;
  EXPECT_EQ(get_next(stream, batch), EIO);
}
TEST(Rules, StreamErrnoCodes) { returns_errno_codes<Plain>(); }
TEST(Rules, DeviceStreamErrnoCodes) { returns_errno_codes<Device>(); }

template <class Raw>
void tells_why() {
  const auto text_for = [](const std::string& words) -> std::string {
    Parts parts;
    const auto fails = [&] { return Result<BatchOf<Raw>>(Error(EIO, words)); };
    auto stream = stream_of<Raw>(parts, counting<Raw>(parts, 0, fails));
    EXPECT_EQ(stream->get_last_error(stream.get()), nullptr);  // no failure yet
    BatchOf<Raw> batch;
    EXPECT_EQ(get_next(stream, batch), EIO);
    const char* text = stream->get_last_error(stream.get());
    return text != nullptr ? text : "NULL";
  };
  EXPECT_EQ(text_for("caf\xC3\xA9"), "caf\xC3\xA9");
  EXPECT_EQ(text_for("\xFF\x01"), "\\xff\\x01");
  EXPECT_EQ(text_for(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(text_for(""), "NULL");
  EXPECT_EQ(text_for(std::string(10'000, 'x')).size(), 4099U);
}
TEST(Rules, StreamErrorText) { tells_why<Plain>(); }
TEST(Rules, DeviceStreamErrorText) { tells_why<Device>(); }

template <class Raw>
void text_stays_until_the_next_call() {
  Parts parts;
  const auto fails = [] { return Result<BatchOf<Raw>>(Error(EIO, "long enough for the heap")); };
  auto stream = stream_of<Raw>(parts, counting<Raw>(parts, 0, fails));
  BatchOf<Raw> batch;
  EXPECT_EQ(get_next(stream, batch), EIO);
  const char* text = stream->get_last_error(stream.get());
  Owner<Raw> moved(std::move(stream));
  EXPECT_EQ(moved->get_last_error(moved.get()), text);
  EXPECT_STREQ(text, "long enough for the heap");
  // A failed stream fails again with the same message; get_schema still succeeds, without a
  // message.
  Schema schema;
  EXPECT_EQ(moved->get_schema(moved.get(), schema.out()), 0);
  EXPECT_EQ(moved->get_last_error(moved.get()), nullptr);
  EXPECT_EQ(get_next(moved, batch), EIO);
  EXPECT_STREQ(moved->get_last_error(moved.get()), "long enough for the heap");
}
TEST(Rules, StreamErrorTextLifetime) { text_stays_until_the_next_call<Plain>(); }
TEST(Rules, DeviceStreamErrorTextLifetime) { text_stays_until_the_next_call<Device>(); }

TEST(Rules, DeviceStreamDeviceTypeSet) {
  Parts parts;
  const auto none = [] { return DeviceArray(); };
  EXPECT_EQ(make_device_stream(parts.schema(), ARROW_DEVICE_CUDA, none).value()->device_type,
            ARROW_DEVICE_CUDA);
  EXPECT_EQ(make_device_stream(parts.schema(), 9999, none).value()->device_type, 9999);
  EXPECT_EQ(code_of(make_device_stream(parts.schema(), 0, none)), EINVAL);
}

int code_of_batch(ArrowDeviceType stream, ArrowDeviceType batch, Options options = {}) {
  Parts parts;
  auto made = make_device_stream(
      parts.schema(), stream, [&] { return parts.batch<DeviceArray>(1, batch); },
      std::move(options));
  DeviceArray out;
  return get_next(*made, out);
}
TEST(Rules, DeviceStreamOneDeviceType) {
  int warnings = 0;
  const Options counts{.on_warning = [&](const Warning& warning) {
    EXPECT_EQ(warning.rule, "device-stream.one-device-type");
    ++warnings;
  }};
  EXPECT_EQ(code_of_batch(ARROW_DEVICE_CUDA, ARROW_DEVICE_CUDA, counts), 0);
  EXPECT_EQ(warnings, 0);
  EXPECT_EQ(code_of_batch(ARROW_DEVICE_CUDA, ARROW_DEVICE_CUDA_MANAGED, counts), 0);
  EXPECT_EQ(warnings, 1);
  EXPECT_EQ(code_of_batch(ARROW_DEVICE_CUDA, ARROW_DEVICE_CUDA_MANAGED, {.strict = true}), EINVAL);
}
TEST(Rules, DeviceStreamResultAccessible) {
  EXPECT_EQ(code_of_batch(ARROW_DEVICE_CUDA, ARROW_DEVICE_CPU), EINVAL);
  EXPECT_EQ(code_of_batch(ARROW_DEVICE_CUDA, 9999), EINVAL);
}

TEST(Rules, DeviceArrayReservedZero) {
  Parts parts;
  int warnings = 0;
  auto stream = make_device_stream(parts.schema(), ARROW_DEVICE_CPU,
                                   [&] {
                                     auto batch = parts.batch<DeviceArray>(1);
                                     batch->reserved[1] = 5;
                                     return batch;
                                   },
                                   {.on_warning = [&](const Warning&) { ++warnings; }});
  DeviceArray out;
  ASSERT_EQ(get_next(*stream, out), 0);
  for (const std::int64_t word : out->reserved) EXPECT_EQ(word, 0);
  EXPECT_EQ(warnings, 1);
}

// --- Content of a stream ---

template <class Raw, class Content>
std::vector<std::int64_t> lengths_of(Parts& parts, Content content) {
  std::vector<std::int64_t> lengths;
  StreamReader<Raw> reader(stream_of<Raw>(parts, std::move(content)), {.strict = true});
  for (auto& batch : reader) lengths.push_back(batch ? length_of(*batch) : -batch.error().code());
  return lengths;
}

TEST(MakeStream, AcceptsVector) {
  Parts parts;
  std::vector<DeviceArray> batches;
  for (const int length : {1, 2}) batches.push_back(parts.batch<DeviceArray>(length));
  EXPECT_EQ(lengths_of<Device>(parts, std::move(batches)), (std::vector<std::int64_t>{1, 2}));
}

TEST(MakeStream, AcceptsView) {
  Parts parts;
  auto view = std::views::iota(1, 4) |
              std::views::transform([&](int length) { return parts.batch<Array>(length); });
  EXPECT_EQ(lengths_of<Plain>(parts, view), (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(MakeStream, AcceptsResults) {
  Parts parts;
  std::vector<Result<Array>> batches;
  batches.emplace_back(parts.batch<Array>(1));
  batches.emplace_back(Error(ENOSPC, "full"));
  batches.emplace_back(parts.batch<Array>(3));
  EXPECT_EQ(lengths_of<Plain>(parts, std::move(batches)), (std::vector<std::int64_t>{1, -ENOSPC}));
}

TEST(MakeStream, AcceptsReader) {
  Parts parts;
  Script foreign{.steps{{}, {}, {.code = ENOSPC}}};
  DeviceArrayStreamReader reader(foreign_stream<Device>(foreign));
  EXPECT_EQ(lengths_of<Device>(parts, std::move(reader)),
            (std::vector<std::int64_t>{1, 2, -ENOSPC}));
  expect_clean(foreign);
}

TEST(MakeStream, CallableEndsStreamWithNullopt) {
  Parts parts;
  const auto counts = [&parts, n = 0]() mutable -> std::optional<Result<Array>> {
    if (n == 2) return std::nullopt;
    return parts.batch<Array>(++n);
  };
  EXPECT_EQ(lengths_of<Plain>(parts, counts), (std::vector<std::int64_t>{1, 2}));

  Script foreign{.steps{{}, {.code = ENOSPC}}};
  DeviceArrayStreamReader reader(foreign_stream<Device>(foreign));
  EXPECT_EQ(lengths_of<Device>(parts, [&] { return reader.next(); }),
            (std::vector<std::int64_t>{1, -ENOSPC}));
  reader.release();
  expect_clean(foreign);

  const auto moved_from = [] { return std::optional<DeviceArray>(DeviceArray()); };
  EXPECT_EQ(lengths_of<Device>(parts, moved_from), (std::vector<std::int64_t>{-EINVAL}));
}

TEST(MakeStream, ThrowingCallableCopyReturnsEnomem) {
  Parts parts;
  struct ThrowsWhenCopied {
    ThrowsWhenCopied() = default;
    ThrowsWhenCopied(const ThrowsWhenCopied&) { throw std::bad_alloc(); }
    ThrowsWhenCopied& operator=(const ThrowsWhenCopied&) = delete;
    ThrowsWhenCopied(ThrowsWhenCopied&&) = default;
    ThrowsWhenCopied& operator=(ThrowsWhenCopied&&) = delete;
    ~ThrowsWhenCopied() = default;
    Array operator()() const { return {}; }
  };
  const ThrowsWhenCopied content;
  EXPECT_EQ(code_of(make_array_stream(parts.schema(), content)), ENOMEM);
  EXPECT_EQ(code_of(make_array_stream(parts.schema(), ThrowsWhenCopied())), 0);
}

TEST(MakeStream, RejectsReleasedElement) {
  Parts parts;
  std::vector<Array> batches(2);
  EXPECT_EQ(lengths_of<Plain>(parts, std::move(batches)), (std::vector<std::int64_t>{-EINVAL}));
}

/// A stream of `format` over a reader of another stream of int32 arrays.
template <class Raw>
Owner<Raw> relabelled(Script& script, const char* format) {
  Schema schema = make_schema({.format = format}).value();
  StreamReader<Raw> reader(foreign_stream<Raw>(script));
  if constexpr (std::is_same_v<Raw, Device>) {
    return make_device_stream(std::move(schema), ARROW_DEVICE_CPU, std::move(reader)).value();
  } else {
    return make_array_stream(std::move(schema), std::move(reader)).value();
  }
}

template <class Raw>
void compare_reader_schema() {
  for (const bool same : {true, false}) {
    Script script{.steps{{}, {}}};
    {
      Owner<Raw> stream = relabelled<Raw>(script, same ? "i" : "l");
      BatchOf<Raw> batch;
      ASSERT_EQ(stream->get_next(stream.get(), batch.out()), same ? 0 : EINVAL);
      if (!same) {
        EXPECT_STREQ(stream->get_last_error(stream.get()), "expected format \"l\", got \"i\"");
        EXPECT_EQ(script.pulls, 0);
      }
    }
    expect_clean(script);
  }
}
TEST(MakeStream, ComparesReaderSchema) {
  compare_reader_schema<Plain>();
  compare_reader_schema<Device>();
}

TEST(MakeStream, RejectsReleasedSchema) {
  EXPECT_EQ(code_of(make_array_stream(Schema(), [] { return Array(); })), EINVAL);
}

TEST(MakeStream, CallbacksAcceptNullArguments) {
  Parts parts;
  auto stream = stream_of<Plain>(parts, [] { return Array(); });
  EXPECT_EQ(stream->get_next(stream.get(), nullptr), EINVAL);
  EXPECT_EQ(stream->get_schema(nullptr, nullptr), EINVAL);
  EXPECT_EQ(stream->get_last_error(nullptr), nullptr);
}

TEST(MakeStream, SurvivesAllocationFailures) {
  Parts parts;
  const auto failed = fail_each_allocation([&](Injection& inject) {
    const auto run = [&]() -> int {
      auto stream =
          make_array_stream(parts.schema(), counting<Plain>(parts, 1, []() -> Result<Array> {
                              return Error(ENOSPC, "a text that is too long for the string itself");
                            }));
      if (!stream) return stream.error().code();
      Schema schema;
      if (const int code = (*stream)->get_schema(stream->get(), schema.out()); code != 0)
        return code;
      Array batch;
      const auto next = [&] { return (*stream)->get_next(stream->get(), batch.out()); };
      if (const int code = next(); code != 0) return code;
      const int code = next();
      const char* text = (*stream)->get_last_error(stream->get());
      EXPECT_TRUE(inject.fired() || text == nullptr || std::string_view(text).size() > 10);
      return code;
    };
    const int code = inject(run);
    EXPECT_TRUE(code == ENOSPC || (inject.fired() && code == ENOMEM)) << code;
  });
  EXPECT_GT(failed, 3);
}

}  // namespace
}  // namespace fletching::testing
