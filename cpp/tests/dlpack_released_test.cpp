// SPDX-License-Identifier: Apache-2.0
//
// Arrays and schemas with a released part, which neither DLPack nor the CUDA Array Interface reads.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

#include "error_messages.hpp"
#include "fletching/cuda_array.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/dlpack_stream.hpp"
#include "fletching/owner.hpp"

namespace fletching::testing {
namespace {

alignas(8) constexpr std::array<std::int32_t, 24> kValues{};

/// Lists of lists of dictionary-encoded int32. Every struct owns memory that its release frees, so
/// a sanitizer detects later reads.
class Tree {
 public:
  static constexpr std::size_t kLevels = 3;

  Tree() {
    constexpr std::array<const char*, kLevels> kFormats{"+w:2", "+w:3", "i"};
    for (std::size_t i = 0; i < kLevels; ++i) {
      make(schemas_[i], kFormats[i]);
      make(arrays_[i], i + 1 == kLevels);
      arrays_[i].length = i == 0 ? 2 : i == 1 ? 4 : 12;
      if (i == 0) continue;
      add_child(schemas_[i - 1], schema_children_[i - 1], schemas_[i]);
      add_child(arrays_[i - 1], array_children_[i - 1], arrays_[i]);
    }
    make(schema_dictionary_, "u");
    make(array_dictionary_, false);
    schemas_.back().dictionary = &schema_dictionary_;
    arrays_.back().dictionary = &array_dictionary_;
  }

  Schema schema() { return Schema(schemas_.data()); }

  DeviceArray array() {
    ArrowDeviceArray raw{};
    raw.array = arrays_[0];
    arrays_[0].release = nullptr;
    raw.device_type = ARROW_DEVICE_CUDA;
    return DeviceArray(&raw);
  }

  static void release_schema(Schema& root, std::size_t level) {
    ArrowSchema* at = root.get();
    for (std::size_t i = 0; i < level; ++i) at = at->children[0];
    at->release(at);
  }
  static void release_array(DeviceArray& root, std::size_t level) {
    ArrowArray* at = &root.get()->array;
    for (std::size_t i = 0; i < level; ++i) at = at->children[0];
    at->release(at);
  }
  void release_schema_dictionary() { schema_dictionary_.release(&schema_dictionary_); }
  void release_array_dictionary() { array_dictionary_.release(&array_dictionary_); }

 private:
  template <class Base>
  static void release_below(Base* self) {
    for (std::int64_t i = 0; i < self->n_children; ++i) {
      if (self->children[i]->release != nullptr) self->children[i]->release(self->children[i]);
    }
    if (self->dictionary != nullptr && self->dictionary->release != nullptr) {
      self->dictionary->release(self->dictionary);
    }
    self->release = nullptr;
  }

  static void make(ArrowSchema& schema, const char* format) {
    auto* text = new char[std::strlen(format) + 1];
    std::strcpy(text, format);
    schema.format = text;
    schema.release = [](ArrowSchema* self) {
      delete[] self->format;
      release_below(self);
    };
  }

  static void make(ArrowArray& array, bool has_values) {
    array.buffers = new const void*[2]{nullptr, kValues.data()};
    array.n_buffers = has_values ? 2 : 1;
    array.release = [](ArrowArray* self) {
      delete[] self->buffers;
      release_below(self);
    };
  }

  template <class Base>
  static void add_child(Base& parent, Base*& list, Base& child) {
    list = &child;
    parent.children = &list;
    parent.n_children = 1;
  }

  std::array<ArrowSchema, kLevels> schemas_{};
  std::array<ArrowArray, kLevels> arrays_{};
  std::array<ArrowSchema*, kLevels> schema_children_{};
  std::array<ArrowArray*, kLevels> array_children_{};
  ArrowSchema schema_dictionary_{};
  ArrowArray array_dictionary_{};
};

/// Expects that the export fails and that the caller still owns the array.
template <class Export>
void expect_refused(Export to, const Schema& schema, DeviceArray& array, std::string_view where) {
  const auto result = to(*schema, array);
  ASSERT_FALSE(result) << where;
  EXPECT_EQ(result.error().code(), EINVAL) << message(result);
  expect_mentions(result.error(), where);
  EXPECT_FALSE(array.is_released());
}

/// Tests both exports after `release` has released a part of a tree.
void expect_both_refuse(const std::function<void(Tree&, Schema&, DeviceArray&)>& release,
                        std::string_view where) {
  const auto play = [&](auto to) {
    Tree tree;
    Schema schema = tree.schema();
    DeviceArray array = tree.array();
    release(tree, schema, array);
    expect_refused(to, schema, array, where);
  };
  play([](const ArrowSchema& schema, DeviceArray& array) {
    return to_dlpack(schema, array, {.as_storage = true});
  });
  play([](const ArrowSchema& schema, DeviceArray& array) {
    return to_cuda_array(schema, array, {}, {.as_storage = true});
  });
}

TEST(DlpackReleased, ExportsCompleteTree) {
  Tree tree;
  Schema schema = tree.schema();
  DeviceArray array = tree.array();
  const Result<DlpackTensor> tensor = to_dlpack(*schema, array, {.as_storage = true});
  ASSERT_TRUE(tensor) << message(tensor);
  EXPECT_EQ((*tensor)->dl_tensor.ndim, 3);
}

TEST(DlpackReleased, RejectsReleasedChildSchemas) {
  expect_both_refuse([](Tree&, Schema& schema, DeviceArray&) { Tree::release_schema(schema, 1); },
                     "ArrowSchema.children[0]: released");
  expect_both_refuse([](Tree&, Schema& schema, DeviceArray&) { Tree::release_schema(schema, 2); },
                     "ArrowSchema.children[0].children[0]: released");
}

TEST(DlpackReleased, RejectsReleasedChildren) {
  expect_both_refuse([](Tree&, Schema&, DeviceArray& array) { Tree::release_array(array, 1); },
                     "ArrowArray.children[0]: released");
  expect_both_refuse([](Tree&, Schema&, DeviceArray& array) { Tree::release_array(array, 2); },
                     "ArrowArray.children[0].children[0]: released");
}

TEST(DlpackReleased, RejectsReleasedDictionaries) {
  expect_both_refuse([](Tree& tree, Schema&, DeviceArray&) { tree.release_schema_dictionary(); },
                     "ArrowSchema.children[0].children[0].dictionary: released");
  expect_both_refuse([](Tree& tree, Schema&, DeviceArray&) { tree.release_array_dictionary(); },
                     "ArrowArray.children[0].children[0].dictionary: released");
}

// The event was destroyed with the array: no stream waits for it.
TEST(DlpackReleased, IgnoresEventOfReleasedArray) {
  Tree tree;
  Schema schema = tree.schema();
  DeviceArray array = tree.array();
  array->sync_event = &tree;
  array.release();
  for (const Ordering ordering : {Ordering::kNone, Ordering::kHost, Ordering::kStream}) {
    const ConsumerStream stream{ordering, Stream::legacy(ARROW_DEVICE_CUDA)};
    EXPECT_EQ(to_dlpack(*schema, array, stream).error().code(), EINVAL);
    EXPECT_EQ(to_legacy_dlpack(*schema, array, stream, {.read_only = false}).error().code(),
              EINVAL);
  }
  EXPECT_EQ(to_cuda_array(*schema, array, Stream::legacy(ARROW_DEVICE_CUDA)).error().code(),
            EINVAL);
}

}  // namespace
}  // namespace fletching::testing
