// Structs as foreign code might hand them in, good ones to be broken by a test.
#ifndef FLETCHING_TESTS_ROUNDTRIP_FAKE_HPP
#define FLETCHING_TESTS_ROUNDTRIP_FAKE_HPP

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "fletching/abi.h"
#include "text.hpp"

namespace fletching::roundtrip {

/// int32 [1, 2, 3] and its schema; the memory is this object's, the releases are counted.
struct FakeArray {
  FakeArray() {
    schema.format = "i";
    schema.release = [](ArrowSchema* self) {
      ++*static_cast<int*>(self->private_data);
      self->release = nullptr;
    };
    schema.private_data = &schema_releases;
    array.array.length = 3;
    array.array.n_buffers = 2;
    array.array.buffers = buffers;
    array.array.release = [](ArrowArray* self) {
      ++*static_cast<int*>(self->private_data);
      self->release = nullptr;
    };
    array.array.private_data = &array_releases;
    array.device_id = -1;
    array.device_type = ARROW_DEVICE_CPU;
  }
  FakeArray(const FakeArray&) = delete;
  FakeArray& operator=(const FakeArray&) = delete;
  ~FakeArray() = default;

  int schema_releases = 0;
  int array_releases = 0;
  std::int32_t values[3] = {1, 2, 3};
  const void* buffers[4] = {nullptr, values, nullptr, nullptr};
  ArrowSchema schema{};
  ArrowDeviceArray array{};
};

/// A struct array with two of them as children.
struct FakeStruct : FakeArray {
  FakeStruct() {
    schema.format = "+s";
    schema.n_children = 2;
    schema.children = schemas;
    array.array.n_buffers = 1;
    array.array.n_children = 2;
    array.array.children = arrays;
  }

  FakeArray a;
  FakeArray b;
  ArrowSchema* schemas[2] = {&a.schema, &b.schema};
  ArrowArray* arrays[2] = {&a.array.array, &b.array.array};
};

/// `work` has to throw an Error with this errno and with `words` in its text.
template <typename Work>
void expect_error(int code, const std::string& words, const Work& work) {
  try {
    work();
    ADD_FAILURE() << "no error, expected one about '" << words << "'";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, code) << error.text;
    EXPECT_NE(error.text.find(words), std::string::npos) << error.text << " says not " << words;
  }
}

}  // namespace fletching::roundtrip

#endif  // FLETCHING_TESTS_ROUNDTRIP_FAKE_HPP
