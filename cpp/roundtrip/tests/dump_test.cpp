// What is dumped, what the producer finds in it, and what is refused.
#include "dump.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "fake.hpp"
#include "owned.hpp"
#include "producer.h"

namespace fletching::roundtrip {
namespace {

// --- The text

std::string bytes_of(std::int32_t number) {
  std::string text;
  for (std::size_t i = 0; i < sizeof(number); ++i) {
    char escaped[4];
    std::snprintf(escaped, sizeof(escaped), "%%%02x",
                  reinterpret_cast<const unsigned char*>(&number)[i]);
    text += escaped;
  }
  return text;
}

TEST(Dump, WritesEveryFieldOnALine) {
  FakeArray fake;
  const std::int32_t one = 1;  // the number of pairs, and the length of the only key
  std::string metadata;
  metadata.append(reinterpret_cast<const char*>(&one), sizeof(one));
  metadata.append(reinterpret_cast<const char*>(&one), sizeof(one));
  metadata.append("k").append(sizeof(one), '\0');  // an empty value
  fake.schema.name = "a \"%~\x7f\u00e9";
  fake.schema.flags = -2;
  fake.schema.metadata = metadata.data();
  fake.schema.private_data = reinterpret_cast<void*>(std::uintptr_t{0xab0});
  fake.buffers[1] = reinterpret_cast<void*>(std::uintptr_t{0x1f});
  fake.array.array.null_count = -1;
  fake.array.array.offset = 7;
  fake.array.array.private_data = nullptr;
  fake.array.reserved[2] = 9;
  EXPECT_EQ(dump(fake.schema, fake.array),
            "schema.format=\"i\"\nschema.name=\"a %22%25~%7f%c3%a9\"\nschema.metadata=\"" +
                bytes_of(1) + bytes_of(1) + "k" + bytes_of(0) +
                "\"\nschema.flags=-2\nschema.n_children=0\nschema.private_data=0xab0\n"
                "array.length=3\narray.null_count=-1\narray.offset=7\narray.n_buffers=2\n"
                "array.n_children=0\narray.buffers[0]=0x0\narray.buffers[1]=0x1f\n"
                "array.private_data=0x0\ndevice_id=-1\ndevice_type=1\nsync_event=0x0\n"
                "reserved[0]=0\nreserved[1]=0\nreserved[2]=9\n");
}

// --- Against the producer

struct Exported {
  explicit Exported(const char* name) {
    FletchingMessage message{};
    EXPECT_EQ(FletchingProducerExportArray("cpu", name, &schema.value, &array.value, &message), 0)
        << message.text;
  }
  [[nodiscard]] std::string dumped() const { return dump(schema.value, array.value); }

  Owned<ArrowSchema> schema;
  Owned<ArrowDeviceArray> array;
};

/// What the producer says of a dump; empty when it is right.
std::string verdict(const std::string& text) {
  FletchingMessage message{};
  std::int64_t asserted = -1;
  const int code = FletchingProducerVerifyDump(text.c_str(), &asserted, &message);
  const auto lines = std::ranges::count(text, '\n');
  EXPECT_EQ(asserted, code == 0 ? lines : 0) << message.text;
  EXPECT_EQ(code, message.text[0] == '\0' ? 0 : EBADMSG) << message.text;
  return message.text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// As the producer does it: two lines fit into a message.
std::string shortened(const std::string& line) {
  if (line.size() <= 400) return line;
  return line.substr(0, 200) + "..." + line.substr(line.size() - 200);
}

void expect_differs(std::size_t line, const std::string& expected, const std::string& got,
                    const std::string& said) {
  EXPECT_EQ(said, "dump: line " + std::to_string(line + 1) + " differs: expected " +
                      shortened(expected) + ", got " + shortened(got));
}

bool is_root(const std::string& line) {
  return line.starts_with("schema.private_data=") || line.starts_with("array.private_data=");
}

/// Line number `i` with another value, missing, duplicated, and after the next one.
void expect_every_change_is_named(const std::vector<std::string>& lines, std::size_t i) {
  const std::string& line = lines[i];
  const std::string next = i + 1 < lines.size() ? lines[i + 1] : "the end of the dump";
  std::vector<std::string> changed = lines;
  changed[i] += '0';
  if (is_root(line)) {
    EXPECT_NE(verdict(joined(changed)).find("expected the value of a live export, got 0x"),
              std::string::npos);
  } else {
    expect_differs(i, line, changed[i], verdict(joined(changed)));
  }
  changed = lines;
  changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
  if (is_root(line)) {
    EXPECT_NE(verdict(joined(changed)).find("no line has "), std::string::npos);
  } else {
    expect_differs(i, line, next, verdict(joined(changed)));
  }
  changed = lines;
  changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i), line);
  expect_differs(i + 1, next, line, verdict(joined(changed)));
  if (i + 1 == lines.size()) return;
  changed = lines;
  std::swap(changed[i], changed[i + 1]);
  expect_differs(i, line, next, verdict(joined(changed)));
}

TEST(VerifyDump, NamesEveryLineThatDiffers) {
  for (int number = 0; number < FletchingProducerCaseCount(); ++number) {
    SCOPED_TRACE(FletchingProducerCaseName(number));
    const Exported exported(FletchingProducerCaseName(number));
    ASSERT_EQ(verdict(exported.dumped()), "");
    const std::vector<std::string> lines = lines_of(exported.dumped());
    const std::size_t step = lines.size() <= 120 ? 1 : lines.size() / 2;
    for (std::size_t i = 0; i < lines.size(); i += step) expect_every_change_is_named(lines, i);
  }
}

TEST(VerifyDump, RefusesWhatIsNoDump) {
  EXPECT_EQ(verdict(""),
            "dump: no line has schema.private_data: expected the value of a live export");
  std::string released;
  {
    const Exported exported("int32");
    released = exported.dumped();
    const std::string schema = released.substr(0, released.find("array."));
    EXPECT_EQ(verdict(schema),
              "dump: no line has array.private_data: expected the value of a live export");
  }
  EXPECT_NE(
      verdict(released).find("schema.private_data: expected the value of a live export, got 0x"),
      std::string::npos);
  EXPECT_EQ(verdict("schema.private_data=1\n"),
            "dump: schema.private_data: expected the value of a live export, got 1");
  FletchingMessage message{};
  EXPECT_EQ(FletchingProducerVerifyDump(nullptr, nullptr, &message), EINVAL);
  EXPECT_STREQ(message.text, "dump: NULL: expected an address");
}

/// What is said of a case that a consumer reads as `change` makes it.
template <typename Change>
std::string misread(const char* name, const Change& change) {
  const Exported exported(name);
  // Changed in place and put back: what is below belongs to the producer.
  ArrowSchema schema = exported.schema.value;
  ArrowDeviceArray array = exported.array.value;
  std::string said;
  change(schema, array, [&] { said = verdict(dump(schema, array)); });
  return said;
}

void expect_said(const std::string& words, const std::string& said) {
  EXPECT_NE(said.find(words), std::string::npos) << said;
}

TEST(VerifyDump, NoticesASwappedField) {
  expect_said("array.null_count=1, got array.null_count=0",
              misread("dictionary", [](ArrowSchema&, ArrowDeviceArray& array, const auto& check) {
                std::swap(array.array.null_count, array.array.offset);
                check();
              }));
  expect_said("array.buffers[1]=0x",
              misread("utf8", [](ArrowSchema&, ArrowDeviceArray& array, const auto& check) {
                std::swap(array.array.buffers[1], array.array.buffers[2]);
                check();
                std::swap(array.array.buffers[1], array.array.buffers[2]);
              }));
}

TEST(VerifyDump, NoticesSkippedAndSwappedChildren) {
  expect_said(
      "schema.n_children=",
      misread("record_batch", [](ArrowSchema& schema, ArrowDeviceArray& array, const auto& check) {
        --schema.n_children;
        --array.array.n_children;
        check();
      }));
  // Alike but for what the producer calls them.
  const auto swapped = [](ArrowSchema&, ArrowDeviceArray& array, const auto& check) {
    std::swap(array.array.children[0], array.array.children[1]);
    check();
    std::swap(array.array.children[0], array.array.children[1]);
  };
  expect_said("array.children[0].", misread("struct", swapped));
}

TEST(VerifyDump, NoticesAForgottenDictionary) {
  const auto forgotten = [](ArrowSchema& schema, ArrowDeviceArray& array, const auto& check) {
    schema.dictionary = nullptr;
    array.array.dictionary = nullptr;
    check();
  };
  expect_said("expected schema.dictionary.format=\"u\", got schema.private_data=0x",
              misread("dictionary", forgotten));
}

TEST(VerifyDump, NoticesAWrongByteOfMetadata) {
  const auto wrong = [](ArrowSchema& schema, ArrowDeviceArray&, const auto& check) {
    std::string block(schema.metadata, 43);
    block.back() = '2';
    schema.metadata = block.data();
    check();
  };
  // The length before it has the machine's byte order.
  expect_said("1\", got schema.metadata=", misread("record_batch", wrong));
}

TEST(VerifyDump, NoticesAWrongPointerOfABuffer) {
  const auto wrong = [](ArrowSchema&, ArrowDeviceArray& array, const auto& check) {
    const void* const right = array.array.buffers[1];
    array.array.buffers[1] = static_cast<const char*>(right) + 1;
    check();
    array.array.buffers[1] = right;
  };
  expect_said("array.buffers[1]=0x", misread("int32", wrong));
}

// --- What is refused

template <typename Fake = FakeArray, typename Change>
void expect_refused(const std::string& words, const Change& change) {
  Fake fake;
  change(fake);
  expect_error(EINVAL, words, [&] { dump(fake.schema, fake.array); });
}

TEST(Dump, RefusesWhatIsReleased) {
  expect_refused("/ schema is released", [](FakeArray& fake) { fake.schema.release = nullptr; });
  expect_refused("/ array is released",
                 [](FakeArray& fake) { fake.array.array.release = nullptr; });
  expect_refused<FakeStruct>("/ schema.children[1] is released",
                             [](FakeStruct& fake) { fake.b.schema.release = nullptr; });
  expect_refused<FakeStruct>("/ array.children[0] is released",
                             [](FakeStruct& fake) { fake.a.array.array.release = nullptr; });
}

TEST(Dump, RefusesNullPointers) {
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

TEST(Dump, RefusesWrongNumbers) {
  expect_refused("array.length is -1", [](FakeArray& fake) { fake.array.array.length = -1; });
  expect_refused("array.offset is -2", [](FakeArray& fake) { fake.array.array.offset = -2; });
  expect_refused("null_count is -2", [](FakeArray& fake) { fake.array.array.null_count = -2; });
  expect_refused("n_buffers is -1", [](FakeArray& fake) { fake.array.array.n_buffers = -1; });
  expect_refused("schema.n_children is -1", [](FakeArray& fake) { fake.schema.n_children = -1; });
  expect_refused<FakeStruct>("array.n_children is 0",
                             [](FakeStruct& fake) { fake.array.array.n_children = 0; });
  static const std::int32_t kPairs[] = {-1};
  static const std::int32_t kText[] = {1, -5};
  expect_refused("schema.metadata has a count of -1", [](FakeArray& fake) {
    fake.schema.metadata = reinterpret_cast<const char*>(kPairs);
  });
  expect_refused("schema.metadata has a count of -5", [](FakeArray& fake) {
    fake.schema.metadata = reinterpret_cast<const char*>(kText);
  });
}

TEST(Dump, RefusesHalfADictionary) {
  expect_refused<FakeStruct>("only one of schema and array has a dictionary",
                             [](FakeStruct& fake) { fake.schema.dictionary = &fake.a.schema; });
}

TEST(Dump, RefusesACycle) {
  expect_refused<FakeStruct>("nested deeper than 64",
                             [](FakeStruct& fake) { fake.schemas[0] = &fake.schema; });
  expect_refused<FakeStruct>("nested deeper than 64",
                             [](FakeStruct& fake) { fake.schema.dictionary = &fake.schema; });
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
