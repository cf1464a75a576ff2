// Accesses to pages, without a device.
#include "watch.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <new>

#include "message.hpp"

namespace {

using fletching::producer::Error;
using fletching::producer::kPageBytes;
using fletching::producer::Watch;

class WatchTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = 64 * kPageBytes;  // an access also maps its neighbours

  WatchTest() { std::memset(memory_, 7, kBytes); }
  ~WatchTest() override { ::operator delete(memory_, std::align_val_t{kPageBytes}); }

  void SetUp() override {
    try {
      const Watch watch;
    } catch (const Error& error) {
      GTEST_SKIP() << error.text;
    }
  }

  char* last() const { return memory_ + kBytes - 1; }

  char* memory_ = static_cast<char*>(::operator new(kBytes, std::align_val_t{kPageBytes}));
};

TEST_F(WatchTest, CountsReadOfLastPage) {
  Watch watch;
  watch.add({memory_, kBytes});
  EXPECT_EQ(watch.accesses().after, 0);
  EXPECT_EQ(*static_cast<const volatile char*>(last()), 7);
  watch.open();
  EXPECT_EQ(watch.accesses().before, 1);
}

TEST_F(WatchTest, CountsReadByWrite) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  Watch watch;
  watch.add({memory_, kBytes});
  watch.open();
  EXPECT_EQ(write(ends[1], last(), 1), 1);
  EXPECT_EQ(watch.accesses().before, 0);
  EXPECT_EQ(watch.accesses().after, 1);
  for (const int end : ends) close(end);
}

TEST_F(WatchTest, LeavesAnonymousMemoryWithContent) {
  {
    Watch watch;
    watch.add({memory_, kBytes});
  }
  EXPECT_EQ(*last(), 7);
  ASSERT_EQ(madvise(memory_, kBytes, MADV_DONTNEED), 0);
  EXPECT_EQ(*last(), 0);
}

}  // namespace
