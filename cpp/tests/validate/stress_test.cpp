// SPDX-License-Identifier: Apache-2.0
//
// The stress options: each exposes a fault that has no findings without it.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../stream_support.hpp"
#include "async_bench.hpp"
#include "findings.hpp"
#include "fletching/validate.h"

namespace fletching::testing {
namespace {

using Stream = ArrowArrayStream;

/// A wrapped stream over a script.
struct StressTest : ::testing::Test {
  ~StressTest() override { release(); }

  Stream& wrap(std::uint32_t stress) {
    release();
    script = Script{};
    script.steps = {{}, {}, {}};
    auto owner = foreign_stream<Stream>(script);
    if (prepare != nullptr) prepare(*owner);
    owner.move_to(&stream);
    findings = Findings{};
    findings.stress = stress;
    const FletchingValidateOptions options = findings.options(FLETCHING_VALIDATE_PROTOCOL);
    EXPECT_EQ(FletchingValidateStream(&stream, &options, nullptr), 0);
    return stream;
  }
  int next(ArrowArray& batch) {
    batch = {};
    return stream.get_next(&stream, &batch);
  }
  int next() {
    ArrowArray batch{};
    const int code = next(batch);
    if (code == 0 && batch.release != nullptr) batch.release(&batch);
    return code;
  }
  void release() {
    if (stream.release != nullptr) stream.release(&stream);
  }

  void (*prepare)(Stream& raw) = nullptr;
  Script script;
  Stream stream{};
  Findings findings;
};

// --- FLETCHING_STRESS_POISON ---

TEST_F(StressTest, PoisonShowsReadAfterRelease) {
  const auto length_after_release = [&](std::uint32_t stress) {
    wrap(stress);
    ArrowArray batch{};
    EXPECT_EQ(next(batch), 0);
    batch.release(&batch);
    EXPECT_EQ(batch.release, nullptr);
    return batch.length;
  };
  EXPECT_EQ(length_after_release(0), 1);
  EXPECT_LT(length_after_release(FLETCHING_STRESS_POISON), 0);
}

TEST_F(StressTest, PoisonShowsKeptErrorText) {
  prepare = [](Stream& raw) {
    raw.get_last_error = [](Stream*) -> const char* { return "static"; };
  };
  const auto kept_text = [&](std::uint32_t stress) {
    wrap(stress);
    script.steps = {{EIO}, {}};
    EXPECT_EQ(next(), EIO);
    const char* const text = stream.get_last_error(&stream);
    EXPECT_STREQ(stream.get_last_error(&stream), "static");
    EXPECT_STREQ(text, "static") << "until the next get_next";
    EXPECT_EQ(next(), 0);
    return std::string(text);
  };
  EXPECT_EQ(kept_text(0), "static");
  EXPECT_EQ(kept_text(FLETCHING_STRESS_POISON), "\xDB\xDB\xDB\xDB\xDB\xDB");
  EXPECT_EQ(findings.list, std::vector<std::string>{});
}

TEST_F(StressTest, PoisonFindsTextChangedByProducer) {
  for (const bool ends_with_release : {false, true}) {
    wrap(FLETCHING_STRESS_POISON);
    script.steps = {{EIO}, {}};
    EXPECT_EQ(next(), EIO);
    EXPECT_STREQ(stream.get_last_error(&stream), "the foreign text");
    script.given_text.front() = '!';
    if (ends_with_release) {
      release();
    } else {
      EXPECT_EQ(next(), 0);
    }
    EXPECT_EQ(findings.list, std::vector<std::string>{
                                 "stream.error-text-lifetime error producer get_last_error[0]"});
  }
}

// --- FLETCHING_STRESS_MOVE ---

Stream* g_stored_stream = nullptr;
ArrowArray* g_stored_array = nullptr;

TEST_F(StressTest, MoveShowsStreamWithStoredAddress) {
  prepare = [](Stream& raw) {
    raw.get_schema = [](Stream* self, ArrowSchema* /*out*/) {
      g_stored_stream = self;
      return ENOSYS;
    };
    raw.get_next = [](Stream* self, ArrowArray* /*out*/) {
      return g_stored_stream->private_data == self->private_data ? 0 : EIO;
    };
  };
  const auto moved = [&](std::uint32_t stress) {
    wrap(stress);
    ArrowSchema schema{};
    EXPECT_EQ(stream.get_schema(&stream, &schema), ENOSYS);
    return next();
  };
  EXPECT_EQ(moved(0), 0);
  EXPECT_EQ(moved(FLETCHING_STRESS_MOVE), EIO);
  EXPECT_EQ(findings.list, std::vector<std::string>{}) << "a read is no finding";
  g_stored_stream->private_data = nullptr;
  release();
  EXPECT_EQ(findings.list,
            std::vector<std::string>{"move.no-stored-address error producer stream.private_data"});
}

TEST_F(StressTest, MoveFindsWriteToMovedArray) {
  prepare = [](Stream& raw) {
    raw.get_next = [](Stream* self, ArrowArray* out) {
      if (g_stored_array != nullptr) g_stored_array->null_count = 1;
      g_stored_array = g_stored_array == nullptr ? out : nullptr;
      return foreign_get_next(self, out);
    };
  };
  wrap(FLETCHING_STRESS_MOVE);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next(), 0);
  EXPECT_EQ(findings.list,
            std::vector<std::string>{"move.no-stored-address error producer get_next[2]"});
  g_stored_array = nullptr;
}

TEST_F(StressTest, MoveShowsSelfPointer) {
  prepare = [](Stream& raw) {
    raw.get_next = [](Stream* self, ArrowArray* out) {
      const int code = foreign_get_next(self, out);
      out->n_buffers = 1;
      out->buffers = const_cast<const void**>(reinterpret_cast<void**>(&out->dictionary));
      return code;
    };
  };
  const auto buffer = [&](std::uint32_t stress) {
    wrap(stress);
    ArrowArray batch{};
    EXPECT_EQ(next(batch), 0);
    const void* const address = batch.buffers[0];
    batch.release(&batch);
    return address;
  };
  EXPECT_EQ(buffer(0), nullptr);
  EXPECT_NE(buffer(FLETCHING_STRESS_MOVE), nullptr);
}

// --- FLETCHING_STRESS_PRIVATE_DATA ---

TEST_F(StressTest, PrivateDataShowsReadingConsumer) {
  ArrowArray batch{};
  wrap(0);
  ASSERT_EQ(next(batch), 0);
  static_cast<void>(*static_cast<volatile const char*>(batch.private_data));
  batch.release(&batch);
  wrap(FLETCHING_STRESS_PRIVATE_DATA);
  ASSERT_EQ(next(batch), 0);
  EXPECT_DEATH_IF_SUPPORTED(
      static_cast<void>(*static_cast<volatile const char*>(batch.private_data)), "");
  batch.release(&batch);
  EXPECT_EQ(findings.list, std::vector<std::string>{});
}

TEST_F(StressTest, PrivateDataFindsChange) {
  wrap(FLETCHING_STRESS_PRIVATE_DATA);
  ArrowArray batch{};
  ASSERT_EQ(next(batch), 0);
  batch.private_data = nullptr;
  batch.release(&batch);
  EXPECT_EQ(findings.list, std::vector<std::string>{
                               "array.private-data-untouched error consumer get_next[0].array"});
  release();
  stream.release = nullptr;
  EXPECT_EQ(script.live, 0);
}

// --- FLETCHING_STRESS_THREAD ---

std::thread::id g_released_on;

TEST_F(StressTest, ThreadShowsThreadBoundRelease) {
  prepare = [](Stream& raw) {
    raw.get_next = [](Stream* self, ArrowArray* out) {
      const int code = foreign_get_next(self, out);
      out->release = [](ArrowArray* array) {
        g_released_on = std::this_thread::get_id();
        release_base(array);
      };
      return code;
    };
    raw.release = [](Stream* self) {
      g_released_on = std::this_thread::get_id();
      foreign_release(self);
    };
  };
  for (const std::uint32_t stress : {0U, FLETCHING_STRESS_THREAD}) {
    wrap(stress);
    EXPECT_EQ(next(), 0);
    EXPECT_EQ(script.live, 0) << "the release has returned";
    EXPECT_EQ(g_released_on == std::this_thread::get_id(), stress == 0);
    g_released_on = {};
    release();
    EXPECT_EQ(script.released_streams, 1);
    EXPECT_EQ(g_released_on == std::this_thread::get_id(), stress == 0);
  }
}

// --- FLETCHING_STRESS_DELAY ---

TEST_F(StressTest, DelayShowsBatchReuse) {
  prepare = [](Stream& raw) {
    raw.get_next = [](Stream* self, ArrowArray* out) {
      const bool is_in_use = static_cast<Script*>(self->private_data)->live > 0;
      return is_in_use ? EBUSY : foreign_get_next(self, out);
    };
  };
  const auto second = [&](std::uint32_t stress) {
    wrap(stress);
    EXPECT_EQ(next(), 0);
    return next();
  };
  EXPECT_EQ(second(0), 0);
  EXPECT_EQ(second(FLETCHING_STRESS_DELAY), EBUSY);
  EXPECT_EQ(script.live, 0) << "the next call has returned";
}

TEST_F(StressTest, DelayEndsWithStream) {
  wrap(FLETCHING_STRESS_DELAY);
  ArrowArray kept{};
  EXPECT_EQ(next(kept), 0);
  EXPECT_EQ(next(), 0);
  EXPECT_EQ(script.live, 2) << "one is kept, one is put off";
  release();
  EXPECT_EQ(script.live, 1);
  kept.release(&kept);
  EXPECT_EQ(script.live, 0);
  EXPECT_EQ(findings.list, std::vector<std::string>{});
  EXPECT_EQ(FletchingValidateLive(), 0);
}

// --- FLETCHING_STRESS_REPORT_AT_EXIT ---

TEST_F(StressTest, ReportsLiveStructsWithHistoryAtExit) {
  const auto print = [](void* /*context*/, const FletchingFinding* finding) {
    std::fprintf(stderr, "<%s %s after %s>\n", finding->rule, finding->path, finding->history);
  };
  const auto leave_batch = [&](std::uint32_t stress) {
    Script lost;
    lost.steps = {{}};
    auto owner = foreign_stream<Stream>(lost);
    const FletchingValidateOptions options{sizeof options, 0, print, nullptr, stress};
    FletchingValidateStream(owner.get(), &options, nullptr);
    ArrowArray batch{};
    owner->get_next(owner.get(), &batch);
    std::exit(0);
  };
  EXPECT_EXIT(leave_batch(FLETCHING_STRESS_REPORT_AT_EXIT), ::testing::ExitedWithCode(0),
              "<stream-result.released-independently get_next.0..array after "
              "get_next.0. returned 0>");
  EXPECT_EXIT(leave_batch(0), ::testing::ExitedWithCode(0), "^$");
}

// --- Async streams ---

using Bench = AsyncBench;

/// Runs a script with the stress options.
Findings stressed(std::uint32_t stress, const Bench::Script& script,
                  const Bench::Script& prepare = nullptr) {
  return Bench::run(script, [&](Bench& b) {
    b.findings.stress = stress;
    if (prepare) prepare(b);
  });
}

/// A text that a consumer keeps without copying it.
const char* g_kept = nullptr;

TEST(AsyncStressTest, PoisonShowsKeptTexts) {
  static const std::string kBlock = a_block();
  const auto keep_metadata = [](Bench& b) {
    b.consumer.raw.on_next_task = [](ArrowAsyncDeviceStreamHandler*, ArrowAsyncTask*,
                                     const char* metadata) {
      g_kept = metadata;
      return ECANCELED;
    };
    b.consumer.raw.on_error = [](ArrowAsyncDeviceStreamHandler*, int, const char* text,
                                 const char*) { g_kept = text; };
  };
  for (const bool fails : {false, true}) {
    for (const std::uint32_t stress : {0U, FLETCHING_STRESS_POISON}) {
      const Findings findings = stressed(
          stress,
          [&](Bench& b) {
            b.start();
            if (fails) {
              b.fail(EIO, "it broke");
            } else {
              b.task(0, kBlock.c_str());
            }
            const char* const given = fails ? "it broke" : kBlock.c_str();
            EXPECT_EQ(g_kept[0] == given[0], stress == 0);
            EXPECT_EQ(g_kept[0] == '\xDB', stress != 0);
            b.release();
          },
          keep_metadata);
      EXPECT_EQ(findings.list, Log{});
    }
  }
}

TEST(AsyncStressTest, PoisonFindsChangedProducerMetadata) {
  for (const bool is_changed : {false, true}) {
    std::string block = a_block();
    const Findings findings = stressed(
        FLETCHING_STRESS_POISON,
        [&](Bench& b) {
          b.start();
          if (is_changed) block.back() = '!';
          b.end();
          b.release();
        },
        [&](Bench& b) { b.producer.raw.additional_metadata = block.c_str(); });
    const std::string expected =
        "async-producer.metadata-lives error producer producer.additional_metadata";
    EXPECT_EQ(findings.list, (is_changed ? Log{expected, expected} : Log{}));
  }
}

// AddressSanitizer detects a copy that is freed too early.
TEST(AsyncStressTest, PoisonKeepsProducerMetadata) {
  constexpr int kTasks = 300;
  const std::string block = a_block();
  const Findings findings = stressed(
      FLETCHING_STRESS_POISON,
      [&](Bench& b) {
        b.start(kTasks);
        for (int i = 0; i < kTasks; ++i) b.task(0, block.c_str());
        const char* const shown = b.consumer.raw.producer->additional_metadata;
        EXPECT_NE(shown, block.c_str()) << "a copy";
        EXPECT_EQ(std::string(shown, block.size()), block);
        b.end();
        b.release();
      },
      [&](Bench& b) { b.producer.raw.additional_metadata = block.c_str(); });
  EXPECT_EQ(findings.list, Log{});
}

TEST(AsyncStressTest, MoveDelayAndThreadApplyToTaskArrays) {
  static ArrowDeviceArray* filled = nullptr;
  static std::thread::id released_on;
  static int live = 0;
  const Findings findings = stressed(
      FLETCHING_STRESS_MOVE | FLETCHING_STRESS_DELAY | FLETCHING_STRESS_THREAD, [](Bench& b) {
        b.start();
        b.custom_task([](ArrowAsyncTask*, ArrowDeviceArray* out) {
          if (out == nullptr) return 0;
          filled = out;
          ++live;
          out->device_type = ARROW_DEVICE_CPU;
          out->array.release = [](ArrowArray* self) {
            released_on = std::this_thread::get_id();
            --live;
            self->release = nullptr;
          };
          return 0;
        });
        DeviceArray array;
        EXPECT_EQ(b.consumer.extract(0, array.out()), 0);
        EXPECT_NE(filled, array.get());
        array.release();
        EXPECT_EQ(live, 1);
        b.end();
        EXPECT_EQ(live, 0);
        EXPECT_NE(released_on, std::this_thread::get_id());
        b.release();
      });
  EXPECT_EQ(findings.list, Log{});
}

// --- Options ---

TEST(StressOptionsTest, AcceptsEarlierSizeAndRejectsUnknownBit) {
  Script script;
  auto stream = foreign_stream<Stream>(script);
  Findings findings;
  findings.stress = 64;
  FletchingValidateOptions options = findings.options(FLETCHING_VALIDATE_PROTOCOL);
  FletchingMessage message{};
  EXPECT_EQ(FletchingValidateStream(stream.get(), &options, &message), EINVAL);
  EXPECT_STREQ(message.text, "options.stress: unknown bit: expected FLETCHING_STRESS_ values");
  options.size = offsetof(FletchingValidateOptions, stress);
  EXPECT_EQ(FletchingValidateStream(stream.get(), &options, &message), 0) << message.text;
}

}  // namespace
}  // namespace fletching::testing
