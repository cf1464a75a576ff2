// Every case, with each of its fields and bytes changed in turn: verify_array must detect each
// change and name the case, the node, and the field or buffer.
#include <cstdlib>
#include <map>
#include <sstream>

#include "catalogue_text.hpp"
#include "support.hpp"

namespace {

using fletching::producer::case_text;

// With many children only some are changed: the parent checks all in one loop.
constexpr int64_t kManyChildren = 16;

// Maps "/0 buffer 1" to 12, from the text of the case.
std::map<std::string, int64_t> buffer_sizes(const std::string& case_name) {
  std::map<std::string, int64_t> sizes;
  std::istringstream text(case_text(case_name));
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
      : exported_(case_name), sizes_(buffer_sizes(case_name)) {}

  // Returns the number of mutations.
  int64_t run() {
    ArrowDeviceArray& device = exported_.array;
    try_number("/", "device_type", device.device_type);
    try_number("/", "device_id", device.device_id);
    try_value("/", "sync_event", device.sync_event, this);
    for (int i = 0; i < 3; ++i) {
      try_number("/", "reserved[" + std::to_string(i) + "]", device.reserved[i]);
    }
    mutate_schema(exported_.schema, "");
    mutate_array(device.array, "");
    EXPECT_EQ(exported_.verify(), 0) << exported_.message.text;
    return mutants_;
  }

 private:
  template <class Field>
  void try_value(const std::string& path, const std::string& what, Field& field,
                 std::type_identity_t<Field> value) {
    ++mutants_;
    const std::string expected = "case " + exported_.case_name + ": " + path + " " + what;
    Changes changes;
    changes.set(field, value);
    EXPECT_EQ(exported_.verify(), EBADMSG) << expected << " was changed, unnoticed";
    const std::string text = exported_.message.text;
    // The name is followed by a space or a colon, so it is not the prefix of a longer name.
    const bool names_it = text.starts_with(expected) && std::strchr(" :", text[expected.size()]);
    EXPECT_TRUE(names_it) << "'" << text << "' does not name '" << expected << "'";
  }

  template <class Number>
  void try_number(const std::string& path, const std::string& what, Number& number) {
    for (const Number step : {-1, 1})
      try_value(path, what, number, static_cast<Number>(number + step));
  }

  void mutate_schema(ArrowSchema& schema, const std::string& below) {
    const std::string path = below.empty() ? "/" : below;
    const std::string longer = std::string(schema.format) + ",1";
    std::string other = schema.format;
    other[0] = static_cast<char>(other[0] ^ 1);
    for (const char* format :
         {longer.c_str(), other.c_str(), "", static_cast<const char*>(nullptr)}) {
      try_value(path, "schema.format", schema.format, format);
    }
    try_value(path, "schema.name", schema.name, "another name");
    const char* const block = schema.metadata == nullptr ? "\0\0\0\0" : nullptr;
    try_value(path, "schema.metadata", schema.metadata, block);
    for (const int64_t flag : {1, 2, 4, 8}) {
      try_value(path, "schema.flags", schema.flags, schema.flags ^ flag);
    }
    mutate_below(schema, path, "schema");
    each_child(schema, [&](int64_t i) {
      mutate_schema(*schema.children[i], below + "/" + std::to_string(i));
    });
    if (schema.dictionary != nullptr) mutate_schema(*schema.dictionary, below + "/d");
  }

  void mutate_array(ArrowArray& array, const std::string& below) {
    const std::string path = below.empty() ? "/" : below;
    try_number(path, "array.length", array.length);
    try_number(path, "array.null_count", array.null_count);
    try_number(path, "array.offset", array.offset);
    try_number(path, "array.n_buffers", array.n_buffers);
    if (array.n_buffers > 0) try_value(path, "array.buffers", array.buffers, nullptr);
    for (int64_t i = 0; i < array.n_buffers; ++i) {
      mutate_buffer(array.buffers[i], path, "buffer " + std::to_string(i));
    }
    mutate_below(array, path, "array");
    each_child(array, [&](int64_t i) {
      mutate_array(*array.children[i], below + "/" + std::to_string(i));
    });
    if (array.dictionary != nullptr) mutate_array(*array.dictionary, below + "/d");
  }

  // Mutations: one bit of every byte, alternating; a NULL pointer; a pointer to other memory.
  void mutate_buffer(const void*& buffer, const std::string& path, const std::string& name) {
    auto* bytes = static_cast<uint8_t*>(const_cast<void*>(buffer));
    const int64_t size = sizes_.at(path + " " + name);
    for (int64_t i = 0; i < size; ++i) {
      try_value(path, name, bytes[i], static_cast<uint8_t>(bytes[i] ^ 1 << (i % 8)));
    }
    if (buffer != nullptr) try_value(path, name, buffer, nullptr);
    try_value(path, name, buffer, this);
  }

  // The members common to schemas and arrays. `kind`: "schema".
  template <class Struct>
  void mutate_below(Struct& above, const std::string& path, const std::string& kind) {
    try_value(path, kind, above.release, nullptr);
    try_number(path, kind + ".n_children", above.n_children);
    if (above.n_children > 0) try_value(path, kind + ".children", above.children, nullptr);
    each_child(above, [&](int64_t i) {
      std::string child = kind;
      child.append(".children[").append(std::to_string(i)).append("]");
      try_value(path, child, above.children[i], nullptr);
    });
    Struct* const other = above.dictionary == nullptr ? &above : nullptr;
    try_value(path, kind + ".dictionary", above.dictionary, other);
  }

  template <class Struct, class Visit>
  static void each_child(const Struct& above, Visit visit) {
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

TEST_P(Mutation, IsDetected) { EXPECT_GT(Mutator(GetParam()).run(), 30); }

INSTANTIATE_TEST_SUITE_P(Catalogue, Mutation, testing::ValuesIn(case_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
