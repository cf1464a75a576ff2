// Every check of verify_array: one field is wrong, and the message names it.
#include <bit>

#include "support.hpp"

namespace {

class Verify : public ProducerTest {
 protected:
  // `change` makes one change to the exported case; `expected` is the whole message after "case
  // NAME: ".
  template <class Change>
  void expect_refused(const std::string& name, const std::string& expected, Change change) {
    Exported exported(name);
    const FletchingProducerCounters before = counters_now();
    {
      Changes changes;
      change(exported, changes);
      EXPECT_EQ(exported.verify(), EBADMSG) << expected;
      EXPECT_EQ(exported.message.text, "case " + name + ": " + expected);
      EXPECT_EQ(FletchingProducerVerifyArray("cpu", name.c_str(), &exported.schema, &exported.array,
                                             nullptr),
                EBADMSG);
    }
    const FletchingProducerCounters after = counters_now();
    EXPECT_EQ(std::memcmp(&before, &after, sizeof(before)), 0) << "Verify released something";
    EXPECT_EQ(exported.verify(), 0) << exported.message.text;
  }
};

TEST_F(Verify, Device) {
  expect_refused("int32", "/ device_type is 2, expected 1",
                 [](auto& e, auto& c) { c.set(e.array.device_type, 2); });
  expect_refused("int32", "/ device_id is 0, expected -1",
                 [](auto& e, auto& c) { c.set(e.array.device_id, 0); });
  expect_refused("int32", "/ sync_event is not NULL, expected NULL",
                 [](auto& e, auto& c) { c.set(e.array.sync_event, &e); });
  for (int i = 0; i < 3; ++i) {
    expect_refused("int32", "/ reserved[" + std::to_string(i) + "] is 7, expected 0",
                   [i](auto& e, auto& c) { c.set(e.array.reserved[i], 7); });
  }
}

TEST_F(Verify, Format) {
  expect_refused("int32", "/ schema.format is NULL, expected a pointer",
                 [](auto& e, auto& c) { c.set(e.schema.format, nullptr); });
  expect_refused("int32", "/ schema.format is '', expected 'i'",
                 [](auto& e, auto& c) { c.set(e.schema.format, ""); });
  expect_refused("struct", "/1 schema.format is 'i', expected 'b'",
                 [](auto& e, auto& c) { c.set(e.schema.children[1]->format, "i"); });
  expect_refused("int32", "/ schema.format is 'i\uFFFD ' (not valid UTF-8), expected 'i'",
                 [](auto& e, auto& c) { c.set(e.schema.format, "i\xC3\n"); });
}

TEST_F(Verify, TreatsNullAndEmptyNameAsEqual) {
  Exported exported("int32");
  Changes changes;
  EXPECT_EQ(exported.schema.name, nullptr);
  changes.set(exported.schema.name, "");
  EXPECT_EQ(exported.verify(), 0) << exported.message.text;
}

// The field metadata block of record_batch, with one number changed.
template <class Test>
void with_metadata(size_t at, int32_t value, Test test) {
  std::string block;
  const auto number = [&](int32_t n) {
    block.append(reinterpret_cast<const char*>(&n), sizeof(n));
  };
  const auto text = [&](const std::string& t) {
    number(static_cast<int32_t>(t.size()));
    block += t;
  };
  number(2);
  text("unit");
  text("gr\u00f6\u00dfe");
  text("empty");
  text("");
  std::memcpy(&block[at], &value, sizeof(value));
  test(block);
}

TEST_F(Verify, Metadata) {
  const auto expect = [&](size_t at, int32_t value, const std::string& expected) {
    with_metadata(at, value, [&](const std::string& block) {
      // Exactly as long as a correct block, so that AddressSanitizer detects a read past the end.
      const std::vector<char> exact(block.begin(), block.end());
      expect_refused("record_batch", "/1 schema.metadata" + expected, [&](auto& e, auto& c) {
        c.set(e.schema.children[1]->metadata, exact.data());
      });
    });
  };
  expect(0, -1, ": the number of pairs is negative: -1");
  expect(0, 3, ": the number of pairs is 3, expected 2");
  expect(0, 0, ": the number of pairs is 0, expected 2");
  expect(4, -4, ": the length of key 0 is negative: -4");
  expect(4, 0x7fffffff, ": the length of key 0 is 2147483647, expected 4");
  expect(12, INT32_MIN, ": the length of value 0 is negative: -2147483648");
  expect(12, 6, ": the length of value 0 is 6, expected 7");
  expect(32, 1, ": the length of value 1 is 1, expected 0");
}

TEST_F(Verify, MetadataText) {
  const std::vector<char> wrong = [] {
    std::vector<char> copy;
    Exported exported("record_batch");
    const char* block = exported.schema.children[1]->metadata;
    copy.assign(block, block + 36);
    copy[8] = '\xFF';
    return copy;
  }();
  expect_refused("record_batch", "/1 schema.metadata: key 0 is '\uFFFDnit', expected 'unit'",
                 [&](auto& e, auto& c) { c.set(e.schema.children[1]->metadata, wrong.data()); });
  expect_refused("record_batch", "/ schema.metadata is NULL, expected a pointer",
                 [](auto& e, auto& c) { c.set(e.schema.metadata, nullptr); });
  expect_refused("int32", "/ schema.metadata is not NULL, expected NULL",
                 [&](auto& e, auto& c) { c.set(e.schema.metadata, wrong.data()); });
}

TEST_F(Verify, Buffers) {
  for (const int64_t count : {int64_t{-2}, int64_t{0}, int64_t{1}, int64_t{3}}) {
    expect_refused("int32", "/ array.n_buffers is " + std::to_string(count) + ", expected 2",
                   [=](auto& e, auto& c) { c.set(e.array.array.n_buffers, count); });
  }
  expect_refused("int32", "/ array.buffers is NULL, expected a pointer",
                 [](auto& e, auto& c) { c.set(e.array.array.buffers, nullptr); });
  expect_refused("int32", "/ buffer 1 is NULL, expected a pointer",
                 [](auto& e, auto& c) { c.set(e.array.array.buffers[1], nullptr); });
  expect_refused("int32", "/ buffer 0 is not NULL, expected NULL",
                 [](auto& e, auto& c) { c.set(e.array.array.buffers[0], &e); });
  const std::string first_byte = std::endian::native == std::endian::little ? "0x02" : "0x00";
  expect_refused("record_batch", "/2/0 buffer 1: byte 4 is 0x03, expected " + first_byte,
                 [](auto& e, auto& c) {
                   const void* values = e.array.array.children[2]->children[0]->buffers[1];
                   c.set(static_cast<uint8_t*>(const_cast<void*>(values))[4], 3);
                 });
  expect_refused("zero_length", "/1 buffer 2 is NULL, expected a pointer",
                 [](auto& e, auto& c) { c.set(e.array.array.children[1]->buffers[2], nullptr); });
}

// The same bytes in other memory: a copy was made.
TEST_F(Verify, Copies) {
  expect_refused("int32", "/ buffer 1 is not the memory that was exported", [](auto& e, auto& c) {
    static int32_t copy[4];
    std::memcpy(copy, e.array.array.buffers[1], sizeof(copy));
    c.set(e.array.array.buffers[1], copy);
  });
  expect_refused("zero_length", "/1 buffer 2 is not the memory that was exported",
                 [](auto& e, auto& c) { c.set(e.array.array.children[1]->buffers[2], &e); });
  expect_refused("zero_length", "/1 buffer 2 is the memory of another exported buffer",
                 [](auto& e, auto& c) {
                   const void* other = e.array.array.children[0]->buffers[1];
                   c.set(e.array.array.children[1]->buffers[2], other);
                 });
}

TEST_F(Verify, RejectsBadArguments) {
  Exported exported("int32");
  FletchingMessage message{};
  const auto code = [&](const char* backend, const char* name, const ArrowSchema* schema,
                        const ArrowDeviceArray* array) {
    return FletchingProducerVerifyArray(backend, name, schema, array, &message);
  };
  EXPECT_EQ(code(nullptr, "int32", &exported.schema, &exported.array), EINVAL);
  EXPECT_EQ(code("cpu", nullptr, &exported.schema, &exported.array), EINVAL);
  EXPECT_EQ(code("cpu", "int32", nullptr, &exported.array), EINVAL);
  EXPECT_STREQ(message.text, "schema: NULL: expected an address");
  EXPECT_EQ(code("cpu", "int32", &exported.schema, nullptr), EINVAL);
  EXPECT_STREQ(message.text, "array: NULL: expected an address");
}

}  // namespace
