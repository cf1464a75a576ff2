// SPDX-License-Identifier: Apache-2.0
//
// The thread that asks about events, with a runtime that answers as the test says.
#include "fletching/detail/reaper.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "released_array.hpp"

namespace fletching::detail {
namespace {

using Clock = std::chrono::steady_clock;

/// An event of the made-up runtime. Both are called on the reaper's thread, and what they have
/// written may be read after the release.
struct Event {
  std::function<Status(void* stream, int64_t device_id)> recorded;
  std::function<Result<bool>()> asked;
};
Event* current = nullptr;  // that record() makes

Result<RecordedEvent> record(void* stream, int64_t device_id, OnCapture) {
  Status status = current->recorded(stream, device_id);
  if (!status) return std::move(status).error();
  RecordedEvent recorded;
  recorded.event = current;
  return recorded;
}

constexpr RecordFunctions kFunctions{
    &record,
    [](const RecordedEvent& recorded) { return static_cast<Event*>(recorded.event)->asked(); },
    [](const RecordedEvent&) { return Status{}; },
    [](CFunction<void(void*)> body, void* data) { body(data); },
};

/// With the event that is recorded, or with the stream that it is still to be recorded on.
void release_later(testing::ReleasedArray& array, Event* event, void* stream = nullptr) {
  DeferredReleases entry(1);
  entry.front().functions = &kFunctions;
  entry.front().recorded.event = event;
  entry.front().stream = stream;
  entry.front().array = array.make(ARROW_DEVICE_CUDA, 3);
  Reaper::instance().add(entry);
}

// The other event is asked about in each round, and so counts them.
TEST(Reaper, AsksEverMoreRarelyWhereTheAnswerIsAnError) {
  Reaper& reaper = Reaper::instance();
  int round = 0;
  std::vector<int> rounds;
  std::vector<std::int64_t> refused;
  Event refusing{{}, [&]() -> Result<bool> {
                   rounds.push_back(round);
                   refused.push_back(reaper.refused());
                   if (rounds.size() < 6) return Error(EIO, "answer " + std::to_string(round));
                   return true;
                 }};
  Event counting{{}, [&]() -> Result<bool> {
                   ++round;
                   return rounds.size() == 6;
                 }};
  testing::ReleasedArray counted;
  release_later(counted, &counting);
  testing::ReleasedArray array;
  release_later(array, &refusing);
  ASSERT_TRUE(array.parents.wait_for(1));
  ASSERT_TRUE(counted.parents.wait_for(1));
  std::vector<int> between;
  for (std::size_t i = 1; i < rounds.size(); ++i) between.push_back(rounds[i] - rounds[i - 1]);
  EXPECT_EQ(between, (std::vector{2, 4, 8, 16, 16}));
  EXPECT_EQ(refused, (std::vector<std::int64_t>{0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(reaper.last_refusal(), "answer " + std::to_string(rounds[4]));
  EXPECT_EQ(reaper.refused(), 0);
  EXPECT_EQ(reaper.pending(), 0);
}

// A lower limit, which no load of the machine changes: a wait does not end before its time.
TEST(Reaper, SleepsLongerFromRoundToRound) {
  std::vector<Clock::time_point> times;
  Event event{{}, [&]() -> Result<bool> {
                times.push_back(Clock::now());
                return times.size() == 10;
              }};
  testing::ReleasedArray array;
  release_later(array, &event);
  ASSERT_TRUE(array.parents.wait_for(1));
  // The first round may be one of its own, between two that are due.
  for (std::size_t i = 1; i + 1 < times.size(); ++i) {
    EXPECT_GE(times[i + 1] - times[i], std::chrono::microseconds(20) * (1 << i)) << i;
  }
}

// One that a capture has kept from being recorded.
TEST(Reaper, RecordsAnEventAsSoonAsTheRuntimeDoes) {
  Reaper& reaper = Reaper::instance();
  int stream = 0;
  std::vector<std::int64_t> refused;
  Event event{[&](void* on, int64_t device_id) -> Status {
                EXPECT_EQ(on, &stream);
                EXPECT_EQ(device_id, 3);
                refused.push_back(reaper.refused());
                if (refused.size() == 1) return Error(EBUSY, "captured");
                if (refused.size() == 2) return Error(EIO, "lost");
                return {};
              },
              [] { return true; }};
  current = &event;
  testing::ReleasedArray array;
  release_later(array, nullptr, &stream);
  ASSERT_TRUE(array.parents.wait_for(1));
  EXPECT_EQ(refused, (std::vector<std::int64_t>{0, 0, 1}));
  EXPECT_EQ(reaper.last_refusal(), "lost");
  EXPECT_EQ(reaper.refused(), 0);
}

}  // namespace
}  // namespace fletching::detail
