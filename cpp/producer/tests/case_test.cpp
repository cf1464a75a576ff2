// The catalogue: every case is exported as its text says.
#include <bit>
#include <cstdio>
#include <set>

#include "support.hpp"

namespace {

// --- A consumer: walks the structs and writes the text, knowing nothing but the Arrow formats
// -------------

std::string Hex(const void* bytes, int64_t size) {
  std::string hex;
  for (int64_t i = 0; i < size; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<const uint8_t*>(bytes)[i]);
    hex += digits;
  }
  return hex;
}

int32_t ReadInt32(const char* at) {
  int32_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

std::string MetadataText(const char* block) {
  if (block == nullptr) return "-";
  const char* end = block + 4;
  for (int32_t left = 2 * ReadInt32(block); left > 0; --left) end += 4 + ReadInt32(end);
  return Hex(block, end - block);
}

int64_t BufferSize(const std::string& format, const ArrowArray& array, int64_t index) {
  const int64_t end = array.offset + array.length;
  const int64_t bitmap = (end + 7) / 8;
  if (index == 0) return bitmap;
  const bool wide = format == "U";
  if (format == "u" || wide || format == "+l") {
    if (index == 1) return (wide ? 8 : 4) * (end + 1);
    return wide ? static_cast<const int64_t*>(array.buffers[1])[end]
                : static_cast<const int32_t*>(array.buffers[1])[end];
  }
  if (format == "b") return bitmap;
  if (format == "c") return end;
  if (format == "i") return 4 * end;
  if (format == "l" || format == "g") return 8 * end;
  ADD_FAILURE() << "format " << format << " is new to this test";
  return 0;
}

std::string Walk(const ArrowSchema& schema, const ArrowArray& array, const std::string& path = "") {
  const std::string format = schema.format;
  const std::string place = path.empty() ? "/" : path;
  std::string text =
      place + " format=" + format + " name=" + (schema.name == nullptr ? "" : schema.name);
  text += " flags=" + std::to_string(schema.flags) + " metadata=" + MetadataText(schema.metadata);
  text +=
      " length=" + std::to_string(array.length) + " null_count=" + std::to_string(array.null_count);
  text += " offset=" + std::to_string(array.offset) + "\n";
  for (int64_t i = 0; i < array.n_buffers; ++i) {
    text += place + " buffer " + std::to_string(i) + " ";
    if (array.buffers[i] == nullptr) {
      text += "-\n";
      continue;
    }
    const int64_t size = BufferSize(format, array, i);
    text += std::to_string(size) + ":" + Hex(array.buffers[i], size) + "\n";
  }
  EXPECT_EQ(schema.n_children, array.n_children);
  for (int64_t i = 0; i < schema.n_children; ++i) {
    text += Walk(*schema.children[i], *array.children[i], path + "/" + std::to_string(i));
  }
  EXPECT_EQ(schema.dictionary == nullptr, array.dictionary == nullptr);
  if (schema.dictionary != nullptr)
    text += Walk(*schema.dictionary, *array.dictionary, path + "/d");
  return text;
}

int64_t CountNulls(const ArrowArray& array) {
  const auto* validity = static_cast<const uint8_t*>(array.buffers[0]);
  int64_t nulls = 0;
  for (int64_t i = array.offset; validity != nullptr && i < array.offset + array.length; ++i) {
    nulls += (validity[i / 8] >> (i % 8) & 1) == 0;
  }
  return nulls;
}

// What has to hold in every node, whatever its type.
void ExpectSound(const ArrowSchema& schema, const ArrowArray& array) {
  EXPECT_EQ(array.null_count, CountNulls(array));
  if ((schema.flags & ARROW_FLAG_NULLABLE) == 0) {
    EXPECT_EQ(array.null_count, 0);
  }
  for (int64_t i = 0; i < array.n_buffers; ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array.buffers[i]) % 64, 0u);
  }
  const bool is_struct = std::string(schema.format) == "+s";
  const bool is_list = std::string(schema.format) == "+l";
  const int64_t end = array.offset + array.length;
  for (int64_t i = 0; i < array.n_children; ++i) {
    const int64_t needed = is_list ? static_cast<const int32_t*>(array.buffers[1])[end] : end;
    EXPECT_TRUE(is_struct || is_list);
    EXPECT_GE(array.children[i]->length, needed);
    ExpectSound(*schema.children[i], *array.children[i]);
  }
  if (array.dictionary != nullptr) ExpectSound(*schema.dictionary, *array.dictionary);
}

class EveryCase : public ProducerTest, public testing::WithParamInterface<std::string> {};

TEST_P(EveryCase, IsExportedAsItsTextSays) {
  Exported exported(GetParam());
  EXPECT_EQ(Walk(exported.schema, exported.array.array),
            FletchingProducerDescribe(GetParam().c_str()));
  ExpectSound(exported.schema, exported.array.array);
}

TEST_P(EveryCase, VerifiesBeforeAndAfterAMove) {
  Exported exported(GetParam());
  EXPECT_EQ(exported.Verify(), 0) << exported.message.text;
  EXPECT_STREQ(exported.message.text, "");
  ArrowSchema schema = Move(exported.schema);
  ArrowDeviceArray array = exported.array;
  exported.array.array.release = nullptr;
  EXPECT_EQ(FletchingProducerVerifyArray("cpu", GetParam().c_str(), &schema, &array, nullptr), 0);
  Release(schema);
  Release(array.array);
}

TEST_P(EveryCase, IsNoOtherCase) {
  Exported exported(GetParam());
  for (const std::string& other : CaseNames()) {
    if (other == GetParam()) continue;
    EXPECT_EQ(FletchingProducerVerifyArray("cpu", other.c_str(), &exported.schema, &exported.array,
                                           nullptr),
              EBADMSG)
        << other;
  }
}

TEST_P(EveryCase, IsOnTheCpu) {
  Exported exported(GetParam());
  EXPECT_EQ(exported.array.device_type, ARROW_DEVICE_CPU);
  EXPECT_EQ(exported.array.device_id, -1);
  EXPECT_EQ(exported.array.sync_event, nullptr);
  for (const int64_t reserved : exported.array.reserved) EXPECT_EQ(reserved, 0);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryCase, testing::ValuesIn(CaseNames()),
                         [](const auto& info) { return info.param; });

TEST(Catalogue, HasTheseCases) {
  const std::vector<std::string> names = CaseNames();
  const std::set<std::string> seen(names.begin(), names.end());
  EXPECT_EQ(seen.size(), names.size());
  for (const char* name :
       {"int32", "int64", "float64", "bool", "utf8", "large_utf8", "list", "struct", "dictionary",
        "nulls", "offset", "struct_offset", "zero_length", "record_batch"}) {
    EXPECT_EQ(seen.count(name), 1u) << name;
  }
}

// Written by hand from the formats, so that a mistake shared by the text and the export shows.
TEST(Catalogue, TextIsWhatTheHeaderSays) {
  if constexpr (std::endian::native != std::endian::little)
    GTEST_SKIP() << "the bytes here are little-endian";
  EXPECT_STREQ(FletchingProducerDescribe("int32"),
               "/ format=i name= flags=2 metadata=- length=4 null_count=0 offset=0\n"
               "/ buffer 0 -\n"
               "/ buffer 1 16:010000000200000000000080ffffff7f\n");
  EXPECT_STREQ(FletchingProducerDescribe("dictionary"),
               "/ format=c name= flags=2 metadata=- length=5 null_count=1 offset=0\n"
               "/ buffer 0 1:1b\n"
               "/ buffer 1 5:0200000102\n"
               "/d format=u name= flags=2 metadata=- length=3 null_count=0 offset=0\n"
               "/d buffer 0 -\n"
               "/d buffer 1 16:0000000003000000080000000c000000\n"
               "/d buffer 2 12:726564677265656e626c7565\n");
  EXPECT_STREQ(FletchingProducerDescribe("zero_length"),
               "/ format=+s name= flags=2 metadata=- length=0 null_count=0 offset=0\n"
               "/ buffer 0 -\n"
               "/0 format=i name=a flags=2 metadata=- length=0 null_count=0 offset=0\n"
               "/0 buffer 0 -\n"
               "/0 buffer 1 0:\n"
               "/1 format=u name=b flags=2 metadata=- length=0 null_count=0 offset=0\n"
               "/1 buffer 0 -\n"
               "/1 buffer 1 4:00000000\n"
               "/1 buffer 2 0:\n");
  const std::string batch = FletchingProducerDescribe("record_batch");
  EXPECT_EQ(batch.find("/ format=+s name= flags=0 "
                       "metadata=02000000060000006f726967696e09000000666c65746368696e67"
                       "0700000076657273696f6e0100000031 length=5 null_count=0 offset=0\n"),
            0u)
      << batch;
}

TEST(Catalogue, NamesEndWithNull) {
  ASSERT_EQ(FletchingProducerBackendCount(), 1);
  EXPECT_STREQ(FletchingProducerBackendName(0), "cpu");
  EXPECT_EQ(FletchingProducerBackendName(1), nullptr);
  EXPECT_EQ(FletchingProducerBackendName(-1), nullptr);
  EXPECT_EQ(FletchingProducerCaseName(FletchingProducerCaseCount()), nullptr);
  EXPECT_EQ(FletchingProducerCaseName(-1), nullptr);
  EXPECT_EQ(FletchingProducerDescribe("no such case"), nullptr);
  EXPECT_EQ(FletchingProducerDescribe(nullptr), nullptr);
}

}  // namespace
