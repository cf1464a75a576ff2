// Handing on streams: failures, foreign texts, exceptions, and batches that outlive the stream.
#include <cerrno>
#include <new>
#include <stdexcept>
#include <string>

#include "fake.hpp"
#include "owned.hpp"
#include "reexport.hpp"

namespace fletching::roundtrip {
namespace {

/// A stream of foreign code whose answers the test sets. One batch, then the end.
struct FakeStream {
  FakeStream() {
    stream.device_type = ARROW_DEVICE_CPU;
    stream.get_schema = [](ArrowDeviceArrayStream* self, ArrowSchema* out) {
      const FakeStream& fake = of(self);
      *out = fake.data.schema;
      return fake.schema_code;
    };
    stream.get_next = [](ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
      FakeStream& fake = of(self);
      *out = fake.data.array;
      if (fake.next_code == 0) fake.data.array.array.release = nullptr;
      return fake.next_code;
    };
    stream.get_last_error = [](ArrowDeviceArrayStream* self) { return of(self).text; };
    stream.release = [](ArrowDeviceArrayStream* self) {
      ++of(self).releases;
      self->release = nullptr;
    };
    stream.private_data = this;
  }
  FakeStream(const FakeStream&) = delete;
  FakeStream& operator=(const FakeStream&) = delete;
  ~FakeStream() = default;

  static FakeStream& of(ArrowDeviceArrayStream* self) {
    return *static_cast<FakeStream*>(self->private_data);
  }

  FakeArray data;
  int schema_code = 0;
  int next_code = 0;
  const char* text = nullptr;
  int releases = 0;
  ArrowDeviceArrayStream stream{};
};

void ignore(const ArrowSchema&, const ArrowDeviceArray&) {}

/// The fake handed on, and what get_next says of it.
struct Passed {
  explicit Passed(FakeStream& fake, BatchObserver observe = ignore) {
    reexport(fake.stream, std::move(observe), stream.value);
  }
  int get_next() { return stream.value.get_next(&stream.value, &batch.value); }
  std::string last_error() {
    const char* text = stream.value.get_last_error(&stream.value);
    return text == nullptr ? "NULL" : text;
  }

  Owned<ArrowDeviceArray> batch;
  Owned<ArrowDeviceArrayStream> stream;
};

TEST(ReexportStream, PassesBatchesAndTheEnd) {
  FakeStream fake;
  int seen = 0;
  Passed passed(fake, [&](const ArrowSchema& schema, const ArrowDeviceArray& batch) {
    ++seen;
    EXPECT_STREQ(schema.format, "i");
    EXPECT_EQ(batch.array.length, 3);
  });
  EXPECT_TRUE(is_released(fake.stream));
  EXPECT_EQ(passed.last_error(), "NULL");
  ASSERT_EQ(passed.get_next(), 0);
  release(passed.stream.value);
  EXPECT_EQ(fake.releases, 1);
  EXPECT_EQ(passed.batch.value.array.length, 3) << "a batch outlives its stream";
  EXPECT_EQ(fake.data.array_releases, 0);
  release(passed.batch.value);
  EXPECT_EQ(fake.data.array_releases, 1);
  EXPECT_EQ(seen, 1);
}

TEST(ReexportStream, PassesTheEndAsAReleasedArray) {
  FakeStream fake;
  fake.data.array.array.release = nullptr;
  Passed passed(fake);
  EXPECT_EQ(passed.get_next(), 0);
  EXPECT_TRUE(is_released(passed.batch.value));
  EXPECT_EQ(passed.get_next(), 0);
}

TEST(ReexportStream, PassesErrnoAndText) {
  FakeStream fake;
  fake.next_code = EXDEV;
  fake.text = "no such batch";
  Passed passed(fake);
  EXPECT_EQ(passed.get_next(), EXDEV);
  EXPECT_EQ(passed.last_error(), "no such batch");
  EXPECT_TRUE(is_released(passed.batch.value));
  EXPECT_EQ(fake.data.array_releases, 0) << "what a failed call left behind is not released";
}

TEST(ReexportStream, PassesTextsThatAreNullOrNotUtf8) {
  FakeStream fake;
  fake.next_code = -1;
  Passed passed(fake);
  EXPECT_EQ(passed.get_next(), -1);
  EXPECT_EQ(passed.last_error(), "(NULL)");
  fake.text = "bad \xff\xfe\n\xc3";
  EXPECT_EQ(passed.get_next(), -1);
  EXPECT_EQ(passed.last_error(), "bad \uFFFD\uFFFD \uFFFD");
}

TEST(ReexportStream, RefusesABatchThatDoesNotFit) {
  FakeStream fake;
  fake.data.array.array.n_children = 1;
  Passed passed(fake);
  EXPECT_EQ(passed.get_next(), EINVAL);
  EXPECT_NE(passed.last_error().find("array.n_children is 1"), std::string::npos);
  EXPECT_EQ(fake.data.array_releases, 1);
}

TEST(ReexportStream, RefusesOutOfNull) {
  FakeStream fake;
  Passed passed(fake);
  EXPECT_EQ(passed.stream.value.get_next(&passed.stream.value, nullptr), EINVAL);
  EXPECT_EQ(passed.last_error(), "get_next: out is NULL");
  EXPECT_EQ(passed.stream.value.get_schema(&passed.stream.value, nullptr), EINVAL);
  EXPECT_EQ(passed.last_error(), "get_schema: out is NULL");
}

TEST(ReexportStream, LetsNoExceptionOut) {
  const auto fails_with = [](const BatchObserver& observe, int code, const std::string& text) {
    FakeStream fake;
    Passed passed(fake, observe);
    EXPECT_EQ(passed.get_next(), code);
    EXPECT_EQ(passed.last_error(), text);
    EXPECT_EQ(fake.data.array_releases, 1);
  };
  using Schema = ArrowSchema;
  using Array = ArrowDeviceArray;
  fails_with([](const Schema&, const Array&) { fail(EBADMSG, "wrong"); }, EBADMSG, "wrong");
  fails_with([](const Schema&, const Array&) { throw std::bad_alloc(); }, ENOMEM, "out of memory");
  fails_with([](const Schema&, const Array&) { throw std::runtime_error("x"); }, EIO,
             "C++ exception");
  fails_with([](const Schema&, const Array&) { throw 1; }, EIO, "C++ exception");
}

TEST(ReexportStream, StaysTheCallersWhenItRefuses) {
  FakeStream fake;
  Owned<ArrowDeviceArrayStream> out;
  fake.schema_code = EIO;
  fake.text = "no schema";
  expect_error(EIO, "no schema", [&] { reexport(fake.stream, ignore, out.value); });
  fake.schema_code = 0;
  fake.data.schema.format = nullptr;
  expect_error(EINVAL, "format is NULL", [&] { reexport(fake.stream, ignore, out.value); });
  fake.stream.get_next = nullptr;
  expect_error(EINVAL, "get_next", [&] { reexport(fake.stream, ignore, out.value); });
  EXPECT_FALSE(is_released(fake.stream));
  EXPECT_TRUE(is_released(out.value));
  EXPECT_EQ(fake.releases, 0);
}

}  // namespace
}  // namespace fletching::roundtrip
