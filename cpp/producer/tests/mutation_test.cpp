// Every case, with every single thing in it made wrong: VerifyArray has to notice each, and to name
// the case, the node, and the field or buffer.
#include <cstdlib>
#include <map>
#include <sstream>

#include "support.hpp"

namespace {

// Of children that are many, only some are changed: their parent checks all in one loop.
constexpr int64_t kManyChildren = 16;

// "/0 buffer 1" to 12, from the text of the case.
std::map<std::string, int64_t> BufferSizes(const std::string& case_name) {
  std::map<std::string, int64_t> sizes;
  std::istringstream text(FletchingProducerDescribe(case_name.c_str()));
  for (std::string line; std::getline(text, line);) {
    const size_t end = line.find(' ', line.find(" buffer ") + 8);
    if (line.find(" buffer ") == std::string::npos) continue;
    sizes[line.substr(0, end)] = std::atoll(line.c_str() + end + 1);
  }
  return sizes;
}

class Mutator {
 public:
  explicit Mutator(const std::string& case_name)
      : exported_(case_name), sizes_(BufferSizes(case_name)) {}

  // Returns how many things were made wrong.
  int64_t Run() {
    ArrowDeviceArray& device = exported_.array;
    TryNumber("/", "device_type", device.device_type);
    TryNumber("/", "device_id", device.device_id);
    Try("/", "sync_event", device.sync_event, this);
    for (int i = 0; i < 3; ++i) {
      TryNumber("/", "reserved[" + std::to_string(i) + "]", device.reserved[i]);
    }
    MutateSchema(exported_.schema, "");
    MutateArray(device.array, "");
    EXPECT_EQ(exported_.Verify(), 0) << exported_.message.text;
    return mutants_;
  }

 private:
  template <class Field>
  void Try(const std::string& path, const std::string& what, Field& field,
           std::type_identity_t<Field> value) {
    ++mutants_;
    const std::string expected = "case " + exported_.case_name + ": " + path + " " + what;
    Changes changes;
    changes.Set(field, value);
    EXPECT_EQ(exported_.Verify(), EBADMSG) << expected << " was changed, unnoticed";
    const std::string text = exported_.message.text;
    // What follows the name is a space or a colon, and not the rest of a longer name.
    const bool names_it = text.starts_with(expected) && std::strchr(" :", text[expected.size()]);
    EXPECT_TRUE(names_it) << "'" << text << "' does not name '" << expected << "'";
  }

  template <class Number>
  void TryNumber(const std::string& path, const std::string& what, Number& number) {
    for (const Number step : {-1, 1}) Try(path, what, number, static_cast<Number>(number + step));
  }

  void MutateSchema(ArrowSchema& schema, const std::string& below) {
    const std::string path = below.empty() ? "/" : below;
    const std::string longer = std::string(schema.format) + ",1";
    std::string other = schema.format;
    other[0] = static_cast<char>(other[0] ^ 1);
    for (const char* format :
         {longer.c_str(), other.c_str(), "", static_cast<const char*>(nullptr)}) {
      Try(path, "schema.format", schema.format, format);
    }
    Try(path, "schema.name", schema.name, "another name");
    const char* const block = schema.metadata == nullptr ? "\0\0\0\0" : nullptr;
    Try(path, "schema.metadata", schema.metadata, block);
    for (const int64_t flag : {1, 2, 4, 8}) {
      Try(path, "schema.flags", schema.flags, schema.flags ^ flag);
    }
    MutateBelow(schema, path, "schema");
    EachChild(schema, [&](int64_t i) {
      MutateSchema(*schema.children[i], below + "/" + std::to_string(i));
    });
    if (schema.dictionary != nullptr) MutateSchema(*schema.dictionary, below + "/d");
  }

  void MutateArray(ArrowArray& array, const std::string& below) {
    const std::string path = below.empty() ? "/" : below;
    TryNumber(path, "array.length", array.length);
    TryNumber(path, "array.null_count", array.null_count);
    TryNumber(path, "array.offset", array.offset);
    TryNumber(path, "array.n_buffers", array.n_buffers);
    if (array.n_buffers > 0) Try(path, "array.buffers", array.buffers, nullptr);
    for (int64_t i = 0; i < array.n_buffers; ++i) {
      MutateBuffer(array.buffers[i], path, "buffer " + std::to_string(i));
    }
    MutateBelow(array, path, "array");
    EachChild(array,
              [&](int64_t i) { MutateArray(*array.children[i], below + "/" + std::to_string(i)); });
    if (array.dictionary != nullptr) MutateArray(*array.dictionary, below + "/d");
  }

  // One bit of every byte, the bits by turns; the pointer gone, or leading elsewhere.
  void MutateBuffer(const void*& buffer, const std::string& path, const std::string& name) {
    auto* bytes = static_cast<uint8_t*>(const_cast<void*>(buffer));
    const int64_t size = sizes_.at(path + " " + name);
    for (int64_t i = 0; i < size; ++i) {
      Try(path, name, bytes[i], static_cast<uint8_t>(bytes[i] ^ 1 << (i % 8)));
    }
    if (buffer != nullptr) Try(path, name, buffer, nullptr);
    Try(path, name, buffer, this);
  }

  // What a schema and an array have alike. `kind`: "schema".
  template <class Struct>
  void MutateBelow(Struct& above, const std::string& path, const std::string& kind) {
    Try(path, kind, above.release, nullptr);
    TryNumber(path, kind + ".n_children", above.n_children);
    if (above.n_children > 0) Try(path, kind + ".children", above.children, nullptr);
    EachChild(above, [&](int64_t i) {
      std::string child = kind;
      child.append(".children[").append(std::to_string(i)).append("]");
      Try(path, child, above.children[i], nullptr);
    });
    Struct* const other = above.dictionary == nullptr ? &above : nullptr;
    Try(path, kind + ".dictionary", above.dictionary, other);
  }

  template <class Struct, class Visit>
  static void EachChild(const Struct& above, Visit visit) {
    for (int64_t i = 0; i < above.n_children; ++i) {
      const bool is_middle = i > 0 && i < above.n_children - 1 && i != above.n_children / 2;
      if (above.n_children <= kManyChildren || !is_middle) visit(i);
    }
  }

  Exported exported_;
  std::map<std::string, int64_t> sizes_;
  int64_t mutants_ = 0;
};

class Mutation : public ProducerTest, public testing::WithParamInterface<std::string> {};

TEST_P(Mutation, IsNoticed) { EXPECT_GT(Mutator(GetParam()).Run(), 30); }

INSTANTIATE_TEST_SUITE_P(Catalogue, Mutation, testing::ValuesIn(CaseNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
