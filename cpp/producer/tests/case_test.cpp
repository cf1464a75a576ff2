// The catalogue: every case is exported as its text describes.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "catalogue_text.hpp"
#include "support.hpp"

namespace {

using fletching::producer::case_text;

// --- A consumer: walks the structs and prints them using only the Arrow formats

std::string hex(const void* bytes, int64_t size) {
  std::string hex;
  for (int64_t i = 0; i < size; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<const uint8_t*>(bytes)[i]);
    hex += digits;
  }
  return hex;
}

int32_t read_int32(const char* at) {
  int32_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

std::string metadata_text(const char* block) {
  if (block == nullptr) return "-";
  const char* end = block + 4;
  for (int32_t left = 2 * read_int32(block); left > 0; --left) end += 4 + read_int32(end);
  return hex(block, end - block);
}

int64_t offset_at(const ArrowArray& array, bool wide, int64_t index) {
  if (array.buffers[1] == nullptr) return 0;
  return wide ? static_cast<const int64_t*>(array.buffers[1])[index]
              : static_cast<const int32_t*>(array.buffers[1])[index];
}

// Bits per value, for the types with a single buffer after the validity bitmap.
int64_t value_bits(const std::string& format) {
  static const std::map<std::string, int64_t> kBits = {
      {"b", 1},    {"c", 8},    {"C", 8},    {"s", 16},   {"S", 16},   {"e", 16},   {"i", 32},
      {"I", 32},   {"f", 32},   {"l", 64},   {"L", 64},   {"g", 64},   {"tdD", 32}, {"tdm", 64},
      {"tts", 32}, {"ttm", 32}, {"ttu", 64}, {"ttn", 64}, {"tiM", 32}, {"tiD", 64}, {"tin", 128}};
  int precision = 0;
  int scale = 0;
  int number = 128;
  if (std::sscanf(format.c_str(), "w:%d", &number) == 1) return 8LL * number;
  if (std::sscanf(format.c_str(), "d:%d,%d,%d", &precision, &scale, &number) >= 2) return number;
  if (format.starts_with("ts") || format.starts_with("tD")) return 64;
  const auto found = kBits.find(format);
  if (found != kBits.end()) return found->second;
  ADD_FAILURE() << "format " << format << " is new to this test";
  return 0;
}

std::vector<int64_t> buffer_sizes(const std::string& format, const ArrowArray& array) {
  const int64_t end = array.offset + array.length;
  const int64_t bitmap = (end + 7) / 8;
  const bool wide = std::set<std::string>{"U", "Z", "+L", "+vL"}.contains(format);
  const int64_t offset = wide ? 8 : 4;
  if (format == "n" || format == "+r") return {};
  if (format.starts_with("+us:")) return {end};
  if (format.starts_with("+ud:")) return {end, 4 * end};
  if (format == "+s" || format.starts_with("+w:")) return {bitmap};
  if (format == "+l" || format == "+m" || format == "+L") return {bitmap, offset * (end + 1)};
  if (format == "+vl" || format == "+vL") return {bitmap, offset * end, offset * end};
  if (format == "u" || format == "z" || format == "U" || format == "Z") {
    return {bitmap, offset * (end + 1), offset_at(array, wide, end)};
  }
  if (format != "vu" && format != "vz") return {bitmap, (end * value_bits(format) + 7) / 8};
  std::vector<int64_t> sizes = {bitmap, 16 * end};
  const int64_t variadic = array.n_buffers - 3;
  const auto* of_data = static_cast<const int64_t*>(array.buffers[array.n_buffers - 1]);
  for (int64_t i = 0; i < variadic; ++i) sizes.push_back(of_data[i]);
  sizes.push_back(8 * variadic);
  return sizes;
}

std::string walk(const ArrowSchema& schema, const ArrowArray& array, const std::string& path = "") {
  const std::string format = schema.format;
  const std::string place = path.empty() ? "/" : path;
  std::string text =
      place + " format=" + format + " name=" + (schema.name == nullptr ? "" : schema.name);
  text += " flags=" + std::to_string(schema.flags) + " metadata=" + metadata_text(schema.metadata);
  text +=
      " length=" + std::to_string(array.length) + " null_count=" + std::to_string(array.null_count);
  text += " offset=" + std::to_string(array.offset) + "\n";
  const std::vector<int64_t> sizes = buffer_sizes(format, array);
  EXPECT_EQ(array.n_buffers, static_cast<int64_t>(sizes.size())) << place;
  for (size_t i = 0; i < sizes.size(); ++i) {
    text += place + " buffer " + std::to_string(i) + " ";
    if (array.buffers[i] == nullptr) {
      text += "-\n";
      continue;
    }
    const int64_t size = sizes[i];
    text += std::to_string(size) + ":" + hex(array.buffers[i], size) + "\n";
  }
  EXPECT_EQ(schema.n_children, array.n_children);
  for (int64_t i = 0; i < schema.n_children; ++i) {
    text += walk(*schema.children[i], *array.children[i], path + "/" + std::to_string(i));
  }
  EXPECT_EQ(schema.dictionary == nullptr, array.dictionary == nullptr);
  if (schema.dictionary != nullptr)
    text += walk(*schema.dictionary, *array.dictionary, path + "/d");
  return text;
}

bool has_validity(const std::string& format) {
  return format != "n" && format != "+r" && !format.starts_with("+u");
}

int64_t count_nulls(const std::string& format, const ArrowArray& array) {
  if (format == "n") return array.length;
  if (!has_validity(format)) return 0;
  const auto* validity = static_cast<const uint8_t*>(array.buffers[0]);
  int64_t nulls = 0;
  for (int64_t i = array.offset; validity != nullptr && i < array.offset + array.length; ++i) {
    nulls += (validity[i / 8] >> (i % 8) & 1) == 0;
  }
  return nulls;
}

// Number of elements of child `index` that the parent covers.
int64_t needed(const std::string& format, const ArrowArray& array, int64_t index) {
  const int64_t end = array.offset + array.length;
  int size = 0;
  if (std::sscanf(format.c_str(), "+w:%d", &size) == 1) return size * end;
  if (format == "+s" || format.starts_with("+us:")) return end;
  if (format == "+r") return end > 0 ? 1 : 0;  // the run ends are checked separately
  if (format == "+l" || format == "+m") return offset_at(array, false, end);
  if (format == "+L") return offset_at(array, true, end);
  int64_t needed = 0;
  const bool wide = format == "+vL";
  for (int64_t i = 0; i < end && format.starts_with("+v"); ++i) {
    const void* sizes = array.buffers[2];
    const int64_t last =
        wide ? static_cast<const int64_t*>(sizes)[i] : static_cast<const int32_t*>(sizes)[i];
    needed = std::max(needed, offset_at(array, wide, i) + last);
  }
  // Alternating children, whatever their type ids.
  for (int64_t i = 0; i < end && format.starts_with("+ud:"); ++i) {
    const auto id = static_cast<const int8_t*>(array.buffers[0])[i];
    const int first = std::atoi(format.c_str() + 4);
    if ((id == first) == (index == 0)) needed = std::max(needed, offset_at(array, false, i) + 1);
  }
  return needed;
}

int64_t last_run_end(const std::string& format, const ArrowArray& ends) {
  const void* values = ends.buffers[1];
  const int64_t last = ends.offset + ends.length - 1;
  if (last < 0) return 0;
  if (format == "s") return static_cast<const int16_t*>(values)[last];
  if (format == "i") return static_cast<const int32_t*>(values)[last];
  return static_cast<const int64_t*>(values)[last];
}

// Checks the invariants of every node of any type.
void expect_sound(const ArrowSchema& schema, const ArrowArray& array) {
  const std::string format = schema.format;
  const int64_t nulls = count_nulls(format, array);
  if (array.null_count != -1) {
    EXPECT_EQ(array.null_count, nulls);
  }
  if ((schema.flags & ARROW_FLAG_NULLABLE) == 0) {
    EXPECT_EQ(nulls, 0);
  }
  for (int64_t i = 0; i < array.n_buffers; ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array.buffers[i]) % 64, 0u);
  }
  for (int64_t i = 0; i < array.n_children; ++i) {
    EXPECT_GE(array.children[i]->length, needed(format, array, i)) << format;
    expect_sound(*schema.children[i], *array.children[i]);
  }
  if (format == "+r") {
    EXPECT_GE(last_run_end(schema.children[0]->format, *array.children[0]),
              array.offset + array.length);
  }
  if (array.dictionary != nullptr) expect_sound(*schema.dictionary, *array.dictionary);
}

class CatalogueCase : public ProducerTest, public testing::WithParamInterface<std::string> {};

TEST_P(CatalogueCase, ExportMatchesText) {
  Exported exported(GetParam());
  EXPECT_EQ(walk(exported.schema, exported.array.array), case_text(GetParam()));
  expect_sound(exported.schema, exported.array.array);
}

TEST_P(CatalogueCase, VerifiesBeforeAndAfterMove) {
  Exported exported(GetParam());
  EXPECT_EQ(exported.verify(), 0) << exported.message.text;
  EXPECT_STREQ(exported.message.text, "");
  ArrowSchema schema = move(exported.schema);
  ArrowDeviceArray array = exported.array;
  exported.array.array.release = nullptr;
  EXPECT_EQ(FletchingProducerVerifyArray("cpu", GetParam().c_str(), &schema, &array, nullptr), 0);
  release(schema);
  release(array.array);
}

TEST_P(CatalogueCase, VerifyRejectsOtherCases) {
  Exported exported(GetParam());
  for (const std::string& other : case_names()) {
    if (other == GetParam()) continue;
    EXPECT_EQ(FletchingProducerVerifyArray("cpu", other.c_str(), &exported.schema, &exported.array,
                                           nullptr),
              EBADMSG)
        << other;
  }
}

TEST_P(CatalogueCase, IsOnCpu) {
  Exported exported(GetParam());
  EXPECT_EQ(exported.array.device_type, ARROW_DEVICE_CPU);
  EXPECT_EQ(exported.array.device_id, -1);
  EXPECT_EQ(exported.array.sync_event, nullptr);
  for (const int64_t reserved : exported.array.reserved) EXPECT_EQ(reserved, 0);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, CatalogueCase, testing::ValuesIn(case_names()),
                         [](const auto& info) { return info.param; });

TEST(Catalogue, HasKnownUniqueCases) {
  const std::vector<std::string> names = case_names();
  const std::set<std::string> seen(names.begin(), names.end());
  EXPECT_EQ(seen.size(), names.size());
  EXPECT_GE(seen.size(), 100u);
  for (const char* name : {"int32", "utf8", "struct", "record_batch", "wide_batch"}) {
    EXPECT_EQ(seen.count(name), 1u) << name;
  }
}

void collect_formats(const ArrowSchema& schema, std::set<std::string>& formats) {
  formats.insert(schema.format);
  for (int64_t i = 0; i < schema.n_children; ++i) collect_formats(*schema.children[i], formats);
  if (schema.dictionary != nullptr) collect_formats(*schema.dictionary, formats);
}

// Every format string of the C data interface, with its parameters.
TEST(Catalogue, HasEveryFormat) {
  std::set<std::string> seen;
  for (const std::string& name : case_names()) collect_formats(Exported(name).schema, seen);
  for (const char* format : {"n",
                             "b",
                             "c",
                             "C",
                             "s",
                             "S",
                             "i",
                             "I",
                             "l",
                             "L",
                             "e",
                             "f",
                             "g",
                             "z",
                             "Z",
                             "u",
                             "U",
                             "vz",
                             "vu",
                             "d:38,2",
                             "w:3",
                             "tdD",
                             "tdm",
                             "tts",
                             "ttm",
                             "ttu",
                             "ttn",
                             "tss:",
                             "tsm:",
                             "tsu:",
                             "tDs",
                             "tDm",
                             "tDu",
                             "tDn",
                             "tiM",
                             "tiD",
                             "tin",
                             "+l",
                             "+L",
                             "+vl",
                             "+vL",
                             "+s",
                             "+m",
                             "+r",
                             "+w:2",
                             "+us:0,1",
                             "tsn:",
                             "+ud:0,1",
                             "d:9,2,32",
                             "d:18,3,64",
                             "d:20,0,128",
                             "d:76,4,256",
                             "tsn:Europe/Berlin"}) {
    EXPECT_EQ(seen.count(format), 1u) << format;
  }
}

// Hand-written from the formats, to detect an error shared by the text and the export.
TEST(Catalogue, TextMatchesHeader) {
  if constexpr (std::endian::native != std::endian::little)
    GTEST_SKIP() << "the bytes here are little-endian";
  EXPECT_EQ(case_text("int32"),
            "/ format=i name= flags=2 metadata=- length=4 null_count=0 offset=0\n"
            "/ buffer 0 -\n"
            "/ buffer 1 16:010000000200000000000080ffffff7f\n");
  EXPECT_EQ(case_text("dictionary"),
            "/ format=c name= flags=2 metadata=- length=5 null_count=1 offset=0\n"
            "/ buffer 0 1:1b\n"
            "/ buffer 1 5:0200000102\n"
            "/d format=u name= flags=2 metadata=- length=3 null_count=0 offset=0\n"
            "/d buffer 0 -\n"
            "/d buffer 1 16:0000000003000000080000000c000000\n"
            "/d buffer 2 12:726564677265656e626c7565\n");
  EXPECT_EQ(case_text("zero_length"),
            "/ format=+s name= flags=2 metadata=- length=0 null_count=0 offset=0\n"
            "/ buffer 0 -\n"
            "/0 format=i name=a flags=2 metadata=- length=0 null_count=0 offset=0\n"
            "/0 buffer 0 -\n"
            "/0 buffer 1 0:\n"
            "/1 format=u name=b flags=2 metadata=- length=0 null_count=0 offset=0\n"
            "/1 buffer 0 -\n"
            "/1 buffer 1 4:00000000\n"
            "/1 buffer 2 0:\n");
  EXPECT_EQ(case_text("decimal32"),
            "/ format=d:9,2,32 name= flags=2 metadata=- length=3 null_count=1 offset=0\n"
            "/ buffer 0 1:05\n"
            "/ buffer 1 12:9600000000000000013665c4\n");
  EXPECT_EQ(case_text("utf8_view"),
            "/ format=vu name= flags=2 metadata=- length=7 null_count=1 offset=0\n"
            "/ buffer 0 1:7b\n"
            "/ buffer 1 112:"
            "0500000073686f727400000000000000"
            "180000006c6f6e670000000000000000"
            "00000000000000000000000000000000"
            "20000000616e6f740100000000000000"
            "00000000000000000000000000000000"
            "0c00000065786163746c792031322062"
            "1f000000616e64200000000018000000\n"
            "/ buffer 2 55:6c6f6e676572207468616e207477656c7665206279746573"
            "616e6420612074686972642c20696e2074686520666972737420616761696e\n"
            "/ buffer 3 32:616e6f74686572206f6e6520696e20746865207365636f6e6420627566666572\n"
            "/ buffer 4 16:37000000000000002000000000000000\n");
  // A slice: all offsets up to the last one used, and no data bytes after it.
  EXPECT_EQ(case_text("utf8_slice"),
            "/ format=u name= flags=2 metadata=- length=3 null_count=1 offset=1\n"
            "/ buffer 0 1:1b\n"
            "/ buffer 1 20:0000000001000000010000000100000007000000\n"
            "/ buffer 2 7:6168c3a96c6c6f\n");
  const std::string batch = case_text("record_batch");
  EXPECT_EQ(batch.find("/ format=+s name= flags=0 "
                       "metadata=02000000060000006f726967696e09000000666c65746368696e67"
                       "0700000076657273696f6e0100000031 length=5 null_count=0 offset=0\n"),
            0u)
      << batch;
}

TEST(Catalogue, NameOutOfRangeIsNull) {
  ASSERT_GT(FletchingProducerBackendCount(), 0);
  EXPECT_STREQ(FletchingProducerBackendName(0), "cpu");
  EXPECT_EQ(FletchingProducerBackendName(FletchingProducerBackendCount()), nullptr);
  EXPECT_EQ(FletchingProducerBackendName(-1), nullptr);
  EXPECT_EQ(FletchingProducerCaseName(FletchingProducerCaseCount()), nullptr);
  EXPECT_EQ(FletchingProducerCaseName(-1), nullptr);
}

}  // namespace
