// SPDX-License-Identifier: Apache-2.0
//
// A device array with two children that counts its releases, for the event tests.
#ifndef FLETCHING_TESTS_RELEASED_ARRAY_HPP
#define FLETCHING_TESTS_RELEASED_ARRAY_HPP

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "fletching/owner.hpp"

namespace fletching::testing {

/// Counts releases and lets a test wait for one, with a timeout of a minute.
class Releases {
 public:
  void add() {
    const std::scoped_lock lock(mutex_);
    ++count_;
    last_thread_ = std::this_thread::get_id();
    changed_.notify_all();
  }

  int count() {
    const std::scoped_lock lock(mutex_);
    return count_;
  }

  std::thread::id last_thread() {
    const std::scoped_lock lock(mutex_);
    return last_thread_;
  }

  bool wait_for(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread::id last_thread_;
  int count_ = 0;
};

struct AddRelease {
  void operator()(Releases* releases) const { releases->add(); }
};
/// Adds a count on destruction.
using Counted = std::unique_ptr<Releases, AddRelease>;

/// The structs of a parent with two children, with counted releases. Must outlive the array.
class ReleasedArray {
 public:
  DeviceArray make(ArrowDeviceType type, int64_t device_id) {
    for (std::size_t i = 0; i < children_.size(); ++i) {
      children_[i] = {};
      children_[i].release = &release_child;
      children_[i].private_data = this;
      pointers_[i] = &children_[i];
    }
    ArrowDeviceArray raw{};
    raw.device_type = type;
    raw.device_id = device_id;
    raw.array.n_children = 2;
    raw.array.children = pointers_.data();
    raw.array.release = &release_parent;
    raw.array.private_data = this;
    return DeviceArray(&raw);
  }

  Releases parents;
  Releases children;

 private:
  static void release_child(ArrowArray* self) {
    auto* owner = static_cast<ReleasedArray*>(self->private_data);
    self->release = nullptr;
    owner->children.add();
  }

  static void release_parent(ArrowArray* self) {
    auto* owner = static_cast<ReleasedArray*>(self->private_data);
    for (int64_t i = 0; i < self->n_children; ++i) {
      ArrowArray* child = self->children[i];
      if (child->release != nullptr) child->release(child);
    }
    self->release = nullptr;
    owner->parents.add();
  }

  std::array<ArrowArray, 2> children_{};
  std::array<ArrowArray*, 2> pointers_{};
};

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_RELEASED_ARRAY_HPP
