// SPDX-License-Identifier: Apache-2.0
//
// A producer without the library: plain structs whose callbacks log releases in order.
#ifndef FLETCHING_TESTS_FOREIGN_HPP
#define FLETCHING_TESTS_FOREIGN_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fletching/abi.h"

namespace fletching::testing {

/// Logged events in order.
using Log = std::vector<std::string>;

/// The private data of a foreign array. Its release logs `name`, then the event, if any.
struct ForeignArray {
  static void release(ArrowArray* self) noexcept {
    const std::unique_ptr<ForeignArray> array(static_cast<ForeignArray*>(self->private_data));
    self->release = nullptr;
    for (ArrowArray& child : array->children) {
      if (child.release != nullptr) child.release(&child);
    }
    if (array->dictionary.release != nullptr) array->dictionary.release(&array->dictionary);
    array->log->push_back(array->name);
    if (array->event != nullptr) array->log->emplace_back("event");
  }

  explicit ForeignArray(Log* log, std::string name) : log(log), name(std::move(name)) {}

  Log* log;
  std::string name;
  int64_t value = 0;
  const void* buffers[2] = {nullptr, &value};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
  ArrowArray dictionary{};
  std::unique_ptr<int> event;
};

/// A foreign array of one value with `children` children. Their names are "a", "a0", "a1".
inline ArrowArray foreign_array(Log* log, const std::string& name, size_t children = 0,
                                bool with_dictionary = false) {
  auto node = std::make_unique<ForeignArray>(log, name);
  for (size_t i = 0; i < children; ++i) {
    node->children.push_back(foreign_array(log, name + std::to_string(i)));
  }
  for (ArrowArray& child : node->children) node->pointers.push_back(&child);
  if (with_dictionary) node->dictionary = foreign_array(log, name + "d");
  ArrowArray array{};
  array.length = 1;
  array.n_buffers = 2;
  array.buffers = node->buffers;
  array.n_children = static_cast<int64_t>(children);
  array.children = children == 0 ? nullptr : node->pointers.data();
  array.dictionary = with_dictionary ? &node->dictionary : nullptr;
  array.release = &ForeignArray::release;
  array.private_data = node.release();
  return array;
}

/// Like foreign_array, on CUDA device 3, with an event that the array's release destroys.
inline ArrowDeviceArray foreign_device_array(Log* log, const std::string& name, size_t children,
                                             bool with_dictionary = false) {
  ArrowDeviceArray array{};
  array.array = foreign_array(log, name, children, with_dictionary);
  array.device_type = ARROW_DEVICE_CUDA;
  array.device_id = 3;
  auto* node = static_cast<ForeignArray*>(array.array.private_data);
  node->event = std::make_unique<int>(0);
  array.sync_event = node->event.get();
  return array;
}

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_FOREIGN_HPP
