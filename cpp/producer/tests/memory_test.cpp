// Out of memory: every allocation of every call fails once, and nothing is left behind.
// Under valgrind: --soname-synonyms=somalloc=nouserintercepts, or it replaces our operator new.
#include <cstdlib>
#include <new>

#include "support.hpp"

namespace {

// How many more allocations of this thread succeed; negative: all of them.
thread_local int64_t allocations_left = -1;

void* Allocate(size_t bytes, size_t alignment) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  void* memory = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<size_t>(alignment));
}
// The libraries of drivers use this one with the delete below.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace {

using OutOfMemory = ProducerTest;

// More than any call here makes.
constexpr int kMostAllocations = 2000;

// Runs `call` with 0, 1, 2, ... allocations until it succeeds; before that it has to return ENOMEM.
// Returns how often it failed.
template <class Call, class After>
int FailEach(Call call, After after) {
  for (int failures = 0; failures < kMostAllocations; ++failures) {
    allocations_left = failures;
    const int code = call();
    allocations_left = -1;
    if (code == 0) return failures;
    EXPECT_EQ(code, ENOMEM);
    after();
    if (testing::Test::HasFailure()) return failures;
  }
  ADD_FAILURE() << "still failing";
  return kMostAllocations;
}

TEST_F(OutOfMemory, Export) {
  ASSERT_NE(FletchingProducerDescribe("record_batch"), nullptr);
  ArrowSchema schema;
  ArrowDeviceArray array;
  FletchingMessage message{};
  const int failures = FailEach(
      [&] {
        return FletchingProducerExportArray("cpu", "record_batch", &schema, &array, &message);
      },
      [&] {
        EXPECT_STREQ(message.text, "out of memory");
        EXPECT_EQ(schema.release, nullptr);
        EXPECT_EQ(array.array.release, nullptr);
        ExpectAtRest();
      });
  EXPECT_GT(failures, 50);
  Release(schema);
  Release(array.array);
}

TEST_F(OutOfMemory, Verify) {
  Exported exported("record_batch");
  FailEach([&] { return exported.Verify(); },
           [&] { EXPECT_STREQ(exported.message.text, "out of memory"); });
}

TEST_F(OutOfMemory, Stream) {
  ArrowDeviceArrayStream stream;
  FailEach([&] { return FletchingProducerExportStream("cpu", "struct", 1, -1, &stream, nullptr); },
           [&] { EXPECT_EQ(stream.release, nullptr); });
  ArrowSchema schema;
  std::memset(&schema, 0xA5, sizeof(schema));
  FailEach([&] { return stream.get_schema(&stream, &schema); },
           [&] {
             EXPECT_STREQ(stream.get_last_error(&stream), "out of memory");
             EXPECT_EQ(schema.release, nullptr);
           });
  Release(schema);
  ArrowDeviceArray batch;
  std::memset(&batch, 0xA5, sizeof(batch));
  // The batch is not lost with the calls that failed.
  FailEach([&] { return stream.get_next(&stream, &batch); },
           [&] {
             EXPECT_STREQ(stream.get_last_error(&stream), "out of memory");
             EXPECT_EQ(batch.array.release, nullptr);
           });
  ASSERT_NE(batch.array.release, nullptr);
  Release(batch.array);
  Release(stream);
}

TEST_F(OutOfMemory, VerifyStream) {
  ArrowDeviceArrayStream stream;
  for (int64_t fail_at : {-1, 1}) {
    // A new stream for each try, because VerifyStream takes it; get_next that fails for want of
    // memory is a difference.
    int code = -1;
    for (int64_t left = 0; code != 0; ++left) {
      ASSERT_LT(left, kMostAllocations) << "still failing";
      ASSERT_EQ(FletchingProducerExportStream("cpu", "struct", 1, fail_at, &stream, nullptr), 0);
      allocations_left = left;
      code = FletchingProducerVerifyStream("cpu", "struct", 1, fail_at, &stream, nullptr);
      allocations_left = -1;
      ASSERT_TRUE(code == 0 || code == ENOMEM || code == EBADMSG) << code;
      EXPECT_EQ(stream.release, nullptr);
      ExpectAtRest();
    }
  }
}

}  // namespace
