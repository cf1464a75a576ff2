// Out of memory: every allocation of every call fails once, without a leak.
// Under valgrind use --soname-synonyms=somalloc=nouserintercepts, or it replaces this operator new.
#include "alloc_failure.hpp"
#include "support.hpp"

namespace {

using fletching::testing::fail_each_allocation;
using fletching::testing::Injection;

// The producer's one-time allocations are made in advance.
class OutOfMemory : public ProducerTest {
 protected:
  void SetUp() override {
    ProducerTest::SetUp();
    ASSERT_EQ(Exported("record_batch").verify(), 0);
  }
};

// Fails each allocation of `call` once, expects ENOMEM, and calls `after` to check for leaks. When
// no allocation fails, `succeeded` consumes the result. Returns the number of failures.
template <class Call, class After, class Succeeded>
int64_t fail_each(Call call, After after, Succeeded succeeded) {
  return fail_each_allocation([&](Injection& inject) {
    const int code = inject(call);
    EXPECT_EQ(code, inject.fired() ? ENOMEM : 0);
    inject.fired() ? after() : succeeded();
  });
}

TEST_F(OutOfMemory, Export) {
  ArrowSchema schema;
  ArrowDeviceArray array;
  FletchingMessage message{};
  const int64_t failures = fail_each(
      [&] {
        return FletchingProducerExportArray("cpu", "record_batch", &schema, &array, &message);
      },
      [&] {
        EXPECT_STREQ(message.text, "out of memory");
        EXPECT_EQ(schema.release, nullptr);
        EXPECT_EQ(array.array.release, nullptr);
        expect_at_rest();
      },
      [&] {
        release(schema);
        release(array.array);
      });
  EXPECT_GT(failures, 50);
}

TEST_F(OutOfMemory, Verify) {
  Exported exported("record_batch");
  const int64_t failures =
      fail_each([&] { return exported.verify(); },
                [&] { EXPECT_STREQ(exported.message.text, "out of memory"); }, [] {});
  EXPECT_GT(failures, 0);
}

TEST_F(OutOfMemory, ExportStream) {
  ArrowDeviceArrayStream stream;
  const int64_t failures = fail_each(
      [&] { return FletchingProducerExportStream("cpu", "struct", 1, -1, &stream, nullptr); },
      [&] { EXPECT_EQ(stream.release, nullptr); }, [&] { release(stream); });
  EXPECT_GT(failures, 0);
}

TEST_F(OutOfMemory, Stream) {
  ArrowDeviceArrayStream stream;
  ASSERT_EQ(FletchingProducerExportStream("cpu", "struct", 1, -1, &stream, nullptr), 0);
  ArrowSchema schema;
  std::memset(&schema, 0xA5, sizeof(schema));
  int64_t failures = fail_each([&] { return stream.get_schema(&stream, &schema); },
                               [&] {
                                 EXPECT_STREQ(stream.get_last_error(&stream), "out of memory");
                                 EXPECT_EQ(schema.release, nullptr);
                               },
                               [&] { release(schema); });
  EXPECT_GT(failures, 0);
  ArrowDeviceArray batch;
  std::memset(&batch, 0xA5, sizeof(batch));
  // Failed calls do not lose the batch.
  failures = fail_each([&] { return stream.get_next(&stream, &batch); },
                       [&] {
                         EXPECT_STREQ(stream.get_last_error(&stream), "out of memory");
                         EXPECT_EQ(batch.array.release, nullptr);
                       },
                       [&] { release(batch.array); });
  EXPECT_GT(failures, 0);
  release(stream);
}

// Each attempt uses a new stream, because verify_stream consumes it; a get_next that fails without
// memory is a difference.
TEST_F(OutOfMemory, VerifyStream) {
  for (int64_t fail_at : {-1, 1}) {
    const int64_t failures = fail_each_allocation([&](Injection& inject) {
      ArrowDeviceArrayStream stream;
      ASSERT_EQ(FletchingProducerExportStream("cpu", "struct", 1, fail_at, &stream, nullptr), 0);
      const int code = inject([&] {
        return FletchingProducerVerifyStream("cpu", "struct", 1, fail_at, &stream, nullptr);
      });
      if (inject.fired()) {
        EXPECT_TRUE(code == ENOMEM || code == EBADMSG) << code;
      } else {
        EXPECT_EQ(code, 0);
      }
      EXPECT_EQ(stream.release, nullptr);
      expect_at_rest();
    });
    EXPECT_GT(failures, 0);
  }
}

}  // namespace
