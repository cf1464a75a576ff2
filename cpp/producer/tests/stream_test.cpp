// Streams: the producer's own, read by a consumer, and hostile ones passed to verify_stream.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>

#include "support.hpp"

namespace {

constexpr char kFailure[] = "case utf8: the stream fails on purpose before batch 2";

class Stream : public ProducerTest {
 protected:
  void export_batches(int64_t batches, int64_t fail_at) {
    std::memset(&stream_, 0xA5, sizeof(stream_));
    ASSERT_EQ(FletchingProducerExportStream("cpu", "utf8", batches, fail_at, &stream_, &message_),
              0)
        << message_.text;
  }
  int verify(int64_t batches, int64_t fail_at, const char* name = "utf8") {
    return FletchingProducerVerifyStream("cpu", name, batches, fail_at, &stream_, &message_);
  }

  ArrowDeviceArrayStream stream_{};
  FletchingMessage message_{};
};

void expect_batch(ArrowDeviceArray& array) {
  ArrowSchema schema;
  ArrowDeviceArray other;
  ASSERT_EQ(FletchingProducerExportArray("cpu", "utf8", &schema, &other, nullptr), 0);
  FletchingMessage message{};
  EXPECT_EQ(FletchingProducerVerifyArray("cpu", "utf8", &schema, &array, &message), 0)
      << message.text;
  release(schema);
  release(other.array);
}

TEST_F(Stream, ReturnsBatchesThenEnd) {
  export_batches(2, -1);
  EXPECT_EQ(stream_.device_type, ARROW_DEVICE_CPU);
  EXPECT_EQ(counters_now().live_streams, 1);
  for (int i = 0; i < 2; ++i) {
    ArrowDeviceArray batch;
    std::memset(&batch, 0xA5, sizeof(batch));
    ASSERT_EQ(stream_.get_next(&stream_, &batch), 0);
    EXPECT_EQ(stream_.get_last_error(&stream_), nullptr);
    expect_batch(batch);
    release(batch.array);
  }
  for (int i = 0; i < 3; ++i) {
    ArrowDeviceArray batch;
    std::memset(&batch, 0xA5, sizeof(batch));
    ASSERT_EQ(stream_.get_next(&stream_, &batch), 0);
    // Byte by byte, to check that padding is zeroed as well.
    const std::span<const std::byte> bytes = std::as_bytes(std::span(&batch, 1));
    EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; }));
  }
  release(stream_);
}

TEST_F(Stream, ReturnsSchemaRepeatedly) {
  export_batches(0, -1);
  ArrowSchema first;
  ArrowSchema second;
  ASSERT_EQ(stream_.get_schema(&stream_, &first), 0);
  ASSERT_EQ(stream_.get_schema(&stream_, &second), 0);
  EXPECT_STREQ(first.format, "u");
  release(first);
  EXPECT_STREQ(second.format, "u");
  release(stream_);
  release(second);
}

TEST_F(Stream, BatchesOutliveStream) {
  export_batches(2, -1);
  ArrowDeviceArray batches[2];
  for (ArrowDeviceArray& batch : batches) ASSERT_EQ(stream_.get_next(&stream_, &batch), 0);
  release(stream_);
  EXPECT_EQ(counters_now().live_streams, 0);
  for (ArrowDeviceArray& batch : batches) {
    expect_batch(batch);
    release(batch.array);
  }
}

TEST_F(Stream, FailsAndKeepsFailing) {
  export_batches(3, 2);
  ArrowDeviceArray batch;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(stream_.get_next(&stream_, &batch), 0);
    release(batch.array);
  }
  for (int i = 0; i < 2; ++i) {
    std::memset(&batch, 0xA5, sizeof(batch));
    EXPECT_EQ(stream_.get_next(&stream_, &batch), EIO);
    EXPECT_EQ(batch.array.release, nullptr);
    EXPECT_STREQ(stream_.get_last_error(&stream_), kFailure);
  }
  ArrowSchema schema;
  EXPECT_EQ(stream_.get_schema(&stream_, &schema), 0);
  EXPECT_EQ(stream_.get_last_error(&stream_), nullptr) << "the last operation did not fail";
  release(schema);
  release(stream_);
}

TEST_F(Stream, RejectsNullOut) {
  export_batches(1, -1);
  EXPECT_EQ(stream_.get_schema(&stream_, nullptr), EINVAL);
  EXPECT_STREQ(stream_.get_last_error(&stream_), "get_schema: out is NULL");
  EXPECT_EQ(stream_.get_next(&stream_, nullptr), EINVAL);
  EXPECT_STREQ(stream_.get_last_error(&stream_), "get_next: out is NULL");
  EXPECT_EQ(verify(1, -1), 0) << message_.text;  // no batch was lost
}

TEST_F(Stream, RejectsUseAfterRelease) {
  export_batches(1, -1);
  ArrowDeviceArrayStream copy = stream_;
  release(stream_);
  ArrowSchema schema;
  ArrowDeviceArray batch;
  EXPECT_EQ(copy.get_schema(&copy, &schema), EINVAL);
  EXPECT_EQ(copy.get_next(&copy, &batch), EINVAL);
  EXPECT_EQ(copy.get_last_error(&copy), nullptr);
  EXPECT_EQ(copy.get_next(nullptr, &batch), EINVAL);
  EXPECT_EQ(copy.get_schema(nullptr, &schema), EINVAL);
  EXPECT_EQ(copy.get_last_error(nullptr), nullptr);
  copy.release(nullptr);
  release(copy);
  expected_double_released_ = 1;
}

TEST_F(Stream, ExportRejectsBadArguments) {
  const auto code = [&](const char* backend, const char* name, int64_t batches, int64_t fail_at) {
    return FletchingProducerExportStream(backend, name, batches, fail_at, &stream_, &message_);
  };
  EXPECT_EQ(code("gpu", "utf8", 1, -1), EINVAL);
  EXPECT_EQ(code("cpu", "utf9", 1, -1), EINVAL);
  EXPECT_EQ(code("cpu", "utf8", -1, -1), EINVAL);
  EXPECT_STREQ(message_.text, "batches: negative: expected 0 or more, got -1");
  EXPECT_EQ(code("cpu", "utf8", 1, 2), EINVAL);
  EXPECT_STREQ(message_.text, "fail_at: out of range: expected -1 to 1 (batches), got 2");
  EXPECT_EQ(code("cpu", "utf8", 1, -2), EINVAL);
  EXPECT_EQ(FletchingProducerExportStream("cpu", "utf8", 1, -1, nullptr, &message_), EINVAL);
  EXPECT_STREQ(message_.text, "stream: NULL: expected an address");
  EXPECT_EQ(stream_.release, nullptr);
}

TEST_F(Stream, VerifyAcceptsExportedStream) {
  for (const std::string& name : case_names()) {
    ASSERT_EQ(FletchingProducerExportStream("cpu", name.c_str(), 3, -1, &stream_, nullptr), 0);
    EXPECT_EQ(verify(3, -1, name.c_str()), 0) << message_.text;
    EXPECT_EQ(stream_.release, nullptr);
    for (const int64_t fail_at : {0, 1, 3}) {
      ASSERT_EQ(FletchingProducerExportStream("cpu", name.c_str(), 3, fail_at, &stream_, nullptr),
                0);
      EXPECT_EQ(verify(3, fail_at, name.c_str()), 0) << message_.text;
    }
    expect_at_rest();
  }
}

TEST_F(Stream, VerifyNamesDifference) {
  const auto expect = [&](int64_t batches, int64_t fail_at, int64_t expected_batches,
                          int64_t expected_fail_at, const char* name, const std::string& text) {
    export_batches(batches, fail_at);
    EXPECT_EQ(verify(expected_batches, expected_fail_at, name), EBADMSG);
    EXPECT_EQ(message_.text, text);
    EXPECT_EQ(stream_.release, nullptr);
    expect_at_rest();
  };
  expect(1, -1, 2, -1, "utf8", "case utf8: batch 1 is the end of the stream, expected a batch");
  expect(3, -1, 2, -1, "utf8", "case utf8: batch 2 is a batch, expected the end of the stream");
  expect(3, 2, 3, -1, "utf8", std::string("case utf8: batch 2 fails with errno 5: ") + kFailure);
  expect(3, -1, 3, 2, "utf8", "case utf8: batch 2 is a batch, expected a failure");
  expect(2, -1, 3, 2, "utf8", "case utf8: batch 2 is the end of the stream, expected a failure");
  expect(1, -1, 1, -1, "int32", "case int32: get_schema: / schema.format is 'u', expected 'i'");
  expect(1, 0, 1, 0, "int32",
         "case int32: batch 0 fails with the text 'case utf8: the stream fails on purpose before "
         "batch 0', expected "
         "'case int32: the stream fails on purpose before batch 0'");
}

TEST_F(Stream, VerifyWithBadArgumentsConsumesStream) {
  export_batches(1, -1);
  EXPECT_EQ(verify(-1, -1), EINVAL);
  EXPECT_EQ(stream_.release, nullptr);
  export_batches(1, -1);
  EXPECT_EQ(verify(1, -1, "utf9"), EINVAL);
  EXPECT_EQ(stream_.release, nullptr);
  EXPECT_EQ(FletchingProducerVerifyStream("cpu", "utf8", 1, -1, nullptr, &message_), EINVAL);
  EXPECT_STREQ(message_.text, "stream: NULL: expected an address");
}

// --- Hostile streams: the test defines each callback

struct Behavior {
  std::function<int(ArrowSchema*)> get_schema;
  std::function<int(ArrowDeviceArray*)> get_next;
  const char* last_error = nullptr;
  bool release_marks = true;
  int releases = 0;
};

Behavior& behavior_of(ArrowDeviceArrayStream* self) {
  return *static_cast<Behavior*>(self->private_data);
}

// Callbacks of a well-behaved producer of one utf8 batch.
int give_schema(ArrowSchema* out) {
  ArrowDeviceArray array;
  const int code = FletchingProducerExportArray("cpu", "utf8", out, &array, nullptr);
  release(array.array);
  return code;
}

int give_batch(ArrowDeviceArray* out) {
  ArrowSchema schema;
  const int code = FletchingProducerExportArray("cpu", "utf8", &schema, out, nullptr);
  release(schema);
  return code;
}

int give_end(ArrowDeviceArray* out) {
  *out = {};
  return 0;
}

class HostileStream : public Stream {
 protected:
  void SetUp() override {
    Stream::SetUp();
    behavior_.get_schema = give_schema;
    behavior_.get_next = give_end;
    stream_.device_type = ARROW_DEVICE_CPU;
    stream_.get_schema = [](ArrowDeviceArrayStream* self, ArrowSchema* out) {
      return behavior_of(self).get_schema(out);
    };
    stream_.get_next = [](ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
      return behavior_of(self).get_next(out);
    };
    stream_.get_last_error = [](ArrowDeviceArrayStream* self) {
      return behavior_of(self).last_error;
    };
    stream_.release = [](ArrowDeviceArrayStream* self) {
      ++behavior_of(self).releases;
      if (behavior_of(self).release_marks) self->release = nullptr;
    };
    stream_.private_data = &behavior_;
  }

  void expect_refused(int64_t batches, int64_t fail_at, const std::string& text) {
    EXPECT_EQ(verify(batches, fail_at), EBADMSG);
    EXPECT_EQ(message_.text, text);
    EXPECT_EQ(behavior_.releases, 1);
  }

  Behavior behavior_;
};

TEST_F(HostileStream, AcceptsConformingStream) {
  EXPECT_EQ(verify(0, -1), 0) << message_.text;
  EXPECT_EQ(behavior_.releases, 1);
}

TEST_F(HostileStream, NullGetSchema) {
  stream_.get_schema = nullptr;
  expect_refused(0, -1, "case utf8: stream get_schema is NULL");
}

TEST_F(HostileStream, NullGetNext) {
  stream_.get_next = nullptr;
  expect_refused(0, -1, "case utf8: stream get_next is NULL");
}

TEST_F(HostileStream, NullGetLastError) {
  stream_.get_last_error = nullptr;
  expect_refused(0, -1, "case utf8: stream get_last_error is NULL");
}

TEST_F(HostileStream, NullRelease) {
  stream_.release = nullptr;
  EXPECT_EQ(verify(0, -1), EBADMSG);
  EXPECT_STREQ(message_.text, "case utf8: stream is released");
}

TEST_F(HostileStream, WrongDeviceType) {
  stream_.device_type = 2;
  expect_refused(0, -1, "case utf8: stream device_type is 2, expected 1");
}

TEST_F(HostileStream, ReleaseWithoutMark) {
  behavior_.release_marks = false;
  expect_refused(0, -1, "case utf8: stream release did not set release to NULL");
}

TEST_F(HostileStream, ReleasedSchema) {
  behavior_.get_schema = [](ArrowSchema*) { return 0; };
  expect_refused(0, -1, "case utf8: get_schema: / schema is released");
}

TEST_F(HostileStream, SchemaFailsWithGarbageInOut) {
  behavior_.get_schema = [](ArrowSchema* out) {
    std::memset(out, 0xA5, sizeof(*out));
    return ENOSYS;
  };
  behavior_.last_error = "no schema";
  expect_refused(
      0, -1, "case utf8: get_schema fails with errno " + std::to_string(ENOSYS) + ": no schema");
}

TEST_F(HostileStream, BatchFailsWithGarbageInOut) {
  behavior_.get_next = [](ArrowDeviceArray* out) {
    std::memset(out, 0xA5, sizeof(*out));
    return -1;
  };
  expect_refused(1, -1, "case utf8: batch 0 fails with errno -1: (NULL)");
}

TEST_F(HostileStream, WrongBatch) {
  int given = 0;
  behavior_.get_next = [&](ArrowDeviceArray* out) {
    if (given++ == 2) return give_end(out);
    const int code = give_batch(out);
    if (given == 2) out->reserved[1] = 1;
    return code;
  };
  expect_refused(2, -1, "case utf8: batch 1: / reserved[1] is 1, expected 0");
}

TEST_F(HostileStream, NeverEnds) {
  behavior_.get_next = give_batch;
  expect_refused(2, -1, "case utf8: batch 2 is a batch, expected the end of the stream");
}

TEST_F(HostileStream, FailsWithAnotherErrno) {
  behavior_.get_next = [](ArrowDeviceArray*) { return EINVAL; };
  behavior_.last_error = "why not";
  expect_refused(1, 0, "case utf8: batch 0 fails with errno 22, expected 5: why not");
}

TEST_F(HostileStream, FailsWithNullText) {
  behavior_.get_next = [](ArrowDeviceArray*) { return EIO; };
  expect_refused(1, 0,
                 "case utf8: batch 0 fails with the text '(NULL)', expected 'case utf8: the stream "
                 "fails on purpose "
                 "before batch 0'");
}

// The expected text: one line in which every byte that is not UTF-8 is replaced.
TEST_F(HostileStream, FailsWithNonUtf8Text) {
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"a\xFFz", "a\uFFFDz"},
      {"\xC0\xAF", "\uFFFD\uFFFD"},                      // '/' in two bytes
      {"\xE0\x80\xAF", "\uFFFD\uFFFD\uFFFD"},            // '/' in three
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},            // half of a surrogate pair
      {"\xF0\x82\x82\xAC", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // the euro sign in four bytes
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // above U+10FFFF
      {"\xE2\x82", "\uFFFD\uFFFD"},                      // truncated
      {"\xC3(", "\uFFFD("},
      {"\u00e9\u20ac\U0001F3F9\U0010FFFF", "\u00e9\u20ac\U0001F3F9\U0010FFFF"},
      {"two\nlines\r\x7F", "two lines  "},
      {"", ""},
  };
  behavior_.get_next = [](ArrowDeviceArray*) { return EAGAIN; };
  const ArrowDeviceArrayStream fresh = stream_;
  for (const auto& [foreign, expected] : texts) {
    stream_ = fresh;
    behavior_.releases = 0;
    behavior_.last_error = foreign.c_str();
    expect_refused(1, -1, "case utf8: batch 0 fails with errno 11: " + expected);
  }
}

TEST_F(HostileStream, FailsWithLongText) {
  const std::string begin = "case utf8: batch 0 fails with errno 11: ";
  behavior_.get_next = [](ArrowDeviceArray*) { return EAGAIN; };
  const ArrowDeviceArrayStream fresh = stream_;
  // The last character is complete, whatever precedes it.
  for (size_t shift = 0; shift < 4; ++shift) {
    std::string foreign(shift, 'x');
    for (int i = 0; i < 1000; ++i) foreign += "\U0001F3F9";
    stream_ = fresh;
    behavior_.releases = 0;
    behavior_.last_error = foreign.c_str();
    const size_t whole = (sizeof(message_.text) - 1 - begin.size() - shift) / 4 * 4;
    const std::string expected = begin + foreign.substr(0, shift + whole);
    EXPECT_EQ(verify(1, -1), EBADMSG);
    EXPECT_EQ(std::strlen(message_.text), expected.size());
    EXPECT_TRUE(message_.text == expected) << "shift " << shift;
  }
}

}  // namespace
