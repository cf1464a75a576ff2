// What may be walked and described, and how everything else is refused.
#include "describe.hpp"

#include <bit>
#include <cerrno>
#include <limits>
#include <string>

#include "check.hpp"
#include "fake.hpp"

namespace fletching::roundtrip {
namespace {

template <typename Fake = FakeArray, typename Change>
void expect_refused(const std::string& words, const Change& change, int code = EINVAL) {
  Fake fake;
  change(fake);
  expect_error(code, words, [&] { describe(fake.schema, fake.array); });
}

/// The bytes of an int32 as they lie in memory, in hex.
std::string bytes_of(char digit) {
  const std::string little = std::string("0") + digit + "000000";
  const std::string big = std::string("0000000") + digit;
  return std::endian::native == std::endian::little ? little : big;
}

TEST(Describe, WritesTheTextOfTheProducer) {
  FakeArray fake;
  const unsigned char validity = 5;
  const std::int32_t one = 1;  // the number of pairs, and the length of the only key
  std::string metadata;
  metadata.append(reinterpret_cast<const char*>(&one), sizeof(one));
  metadata.append(reinterpret_cast<const char*>(&one), sizeof(one));
  metadata.append("k").append(sizeof(one), '\0');  // an empty value
  fake.buffers[0] = &validity;
  fake.schema.name = "n";
  fake.schema.flags = ARROW_FLAG_NULLABLE;
  fake.schema.metadata = metadata.data();
  fake.array.array.null_count = 1;
  fake.array.array.length = 2;
  fake.array.array.offset = 1;
  EXPECT_EQ(describe(fake.schema, fake.array),
            "/ format=i name=n flags=2 metadata=" + bytes_of('1') + bytes_of('1') +
                "6b00000000 length=2 null_count=1 offset=1\n/ buffer 0 1:05\n/ buffer 1 12:" +
                bytes_of('1') + bytes_of('2') + bytes_of('3') + "\n");
}

TEST(Describe, WritesChildrenDictionariesAndText) {
  FakeStruct fake;
  FakeArray words;
  const std::int32_t offsets[] = {0, 2, 2, 3};
  words.schema.format = "u";
  words.buffers[1] = offsets;
  words.buffers[2] = "abc";
  words.array.array.n_buffers = 3;
  fake.b.schema.dictionary = &words.schema;
  fake.b.array.array.dictionary = &words.array.array;
  const std::string text = describe(fake.schema, fake.array);
  EXPECT_NE(text.find("\n/0 buffer 1 12:"), std::string::npos) << text;
  EXPECT_NE(text.find("\n/1/d format=u "), std::string::npos) << text;
  EXPECT_NE(text.find("\n/1/d buffer 2 3:616263\n"), std::string::npos) << text;
}

TEST(Describe, RefusesWhatIsReleased) {
  expect_refused("/ schema is released", [](FakeArray& fake) { fake.schema.release = nullptr; });
  expect_refused("/ array is released",
                 [](FakeArray& fake) { fake.array.array.release = nullptr; });
  expect_refused<FakeStruct>("/ schema.children[1] is released",
                             [](FakeStruct& fake) { fake.b.schema.release = nullptr; });
  expect_refused<FakeStruct>("/ array.children[0] is released",
                             [](FakeStruct& fake) { fake.a.array.array.release = nullptr; });
}

TEST(Describe, RefusesNullPointers) {
  expect_refused("/ schema.format is NULL", [](FakeArray& fake) { fake.schema.format = nullptr; });
  expect_refused("array.n_buffers is 2",
                 [](FakeArray& fake) { fake.array.array.buffers = nullptr; });
  expect_refused<FakeStruct>("schema.n_children is 2",
                             [](FakeStruct& fake) { fake.schema.children = nullptr; });
  expect_refused<FakeStruct>("array.children[1] is NULL",
                             [](FakeStruct& fake) { fake.arrays[1] = nullptr; });
  expect_refused<FakeStruct>("/1 schema.format is NULL",
                             [](FakeStruct& fake) { fake.b.schema.format = nullptr; });
}

TEST(Describe, RefusesWrongNumbers) {
  expect_refused("array.length is -1", [](FakeArray& fake) { fake.array.array.length = -1; });
  expect_refused("array.offset is -2", [](FakeArray& fake) { fake.array.array.offset = -2; });
  expect_refused("null_count is -2", [](FakeArray& fake) { fake.array.array.null_count = -2; });
  expect_refused("n_buffers is -1", [](FakeArray& fake) { fake.array.array.n_buffers = -1; });
  expect_refused("format 'i' has 2", [](FakeArray& fake) { fake.array.array.n_buffers = 3; });
  expect_refused("schema.n_children is -1", [](FakeArray& fake) { fake.schema.n_children = -1; });
  expect_refused<FakeStruct>("array.n_children is 0",
                             [](FakeStruct& fake) { fake.array.array.n_children = 0; });
  expect_refused("array.length is 1152921504606846976", [](FakeArray& fake) {
    fake.schema.format = "w:2147483647";
    fake.array.array.length = std::int64_t{1} << 60;
  });
  expect_refused("array.length is 9223372036854775807", [](FakeArray& fake) {
    fake.array.array.length = std::numeric_limits<std::int64_t>::max();
    fake.array.array.offset = std::numeric_limits<std::int64_t>::max();
  });
}

TEST(Describe, RefusesWrongContents) {
  static const std::int32_t kNegative[] = {-1, -1, -1, -1};
  static const std::int32_t kNegativeText[] = {1, -5};
  const auto metadata = [](const std::int32_t* block) {
    return reinterpret_cast<const char*>(block);
  };
  expect_refused("the last offset is -1", [](FakeArray& fake) {
    fake.schema.format = "z";
    fake.buffers[1] = kNegative;
    fake.array.array.n_buffers = 3;
  });
  static const std::int64_t kNegativeSize[] = {-8};
  const auto view = [](FakeArray& fake, const void* sizes) {
    fake.schema.format = "vu";
    fake.buffers[3] = sizes;
    fake.array.array.n_buffers = 4;
  };
  expect_refused("size of data buffer 0 is -8",
                 [&](FakeArray& fake) { view(fake, kNegativeSize); });
  expect_refused("sizes of the data buffers are NULL",
                 [&](FakeArray& fake) { view(fake, nullptr); });
  expect_refused("format 'vu' has 3 or more", [&](FakeArray& fake) { fake.schema.format = "vu"; });
  expect_refused("the number of pairs is -1",
                 [&](FakeArray& fake) { fake.schema.metadata = metadata(kNegative); });
  expect_refused("the length of a text is -5",
                 [&](FakeArray& fake) { fake.schema.metadata = metadata(kNegativeText); });
}

TEST(Describe, RefusesHalfADictionary) {
  expect_refused<FakeStruct>("only one of schema and array has a dictionary",
                             [](FakeStruct& fake) { fake.schema.dictionary = &fake.a.schema; });
}

TEST(Describe, RefusesACycle) {
  expect_refused<FakeStruct>("nested deeper than 64",
                             [](FakeStruct& fake) { fake.schemas[0] = &fake.schema; });
  expect_refused<FakeStruct>("nested deeper than 64",
                             [](FakeStruct& fake) { fake.schema.dictionary = &fake.schema; });
}

TEST(Describe, RefusesWhatItCannotRead) {
  for (const char* format :
       {"vx", "i ", "tsx:", "ts", "w:", "w:x", "w:-1", "w:99999999999", "d:1,2,x"}) {
    expect_refused(
        "format '" + std::string(format) + "'",
        [=](FakeArray& fake) { fake.schema.format = format; }, ENOTSUP);
  }
  expect_refused(
      "format '\uFFFD '", [](FakeArray& fake) { fake.schema.format = "\xff\n"; }, ENOTSUP);
  expect_refused("device cuda ", [](FakeArray& fake) { fake.array.device_type = 2; }, ENOTSUP);
  expect_refused(
      "device unknown(21) ", [](FakeArray& fake) { fake.array.device_type = 21; }, ENOTSUP);
  expect_refused("sync_event", [](FakeArray& fake) { fake.array.sync_event = &fake; });
}

TEST(RequireSameText, NamesTheFirstLineThatDiffers) {
  require_same_text("a\nb\n", "a\nb\n");
  expect_error(EBADMSG, "'c', expected 'b'", [] { require_same_text("a\nc\n", "a\nb\n"); });
  expect_error(EBADMSG, "'', expected 'b'", [] { require_same_text("a\n", "a\nb\n"); });
  expect_error(EBADMSG, "'b', expected ''", [] { require_same_text("a\nb\n", "a\n"); });
}

TEST(CheckStream, RefusesNullCallbacks) {
  const auto filled = [] {
    ArrowDeviceArrayStream stream{};
    stream.get_schema = [](ArrowDeviceArrayStream*, ArrowSchema*) { return 0; };
    stream.get_next = [](ArrowDeviceArrayStream*, ArrowDeviceArray*) { return 0; };
    stream.get_last_error = [](ArrowDeviceArrayStream*) -> const char* { return nullptr; };
    stream.release = [](ArrowDeviceArrayStream*) {};
    return stream;
  };
  check(filled());
  const auto expect = [&](const std::string& words, const auto& change) {
    ArrowDeviceArrayStream stream = filled();
    change(stream);
    expect_error(EINVAL, words, [&] { check(stream); });
  };
  expect("released", [](ArrowDeviceArrayStream& stream) { stream.release = nullptr; });
  expect("get_schema", [](ArrowDeviceArrayStream& stream) { stream.get_schema = nullptr; });
  expect("get_next", [](ArrowDeviceArrayStream& stream) { stream.get_next = nullptr; });
  expect("get_last_error", [](ArrowDeviceArrayStream& stream) { stream.get_last_error = nullptr; });
}

}  // namespace
}  // namespace fletching::roundtrip
