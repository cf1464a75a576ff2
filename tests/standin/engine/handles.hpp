// SPDX-License-Identifier: Apache-2.0
// Handles. One is the address of a readable block that holds no
// handle: a handle in place of its address, or the reverse, is an unknown value, and the call
// fails. A handle is looked up and never followed, and never reused, except a primary context's,
// which drivers reuse as well.
#ifndef FLETCHING_STANDIN_HANDLES_HPP
#define FLETCHING_STANDIN_HANDLES_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <variant>

#include "capture.hpp"
#include "context.hpp"
#include "kernels.hpp"

namespace fletching::standin {

using Object =
    std::variant<std::shared_ptr<Context>, std::shared_ptr<Stream>, std::shared_ptr<Event>,
                 std::shared_ptr<Module>, std::shared_ptr<Function>, std::shared_ptr<Graph>,
                 std::shared_ptr<GraphExec>>;

class Handles {
 public:
  void* add(Object object) {
    const std::lock_guard lock(mutex_);
    void* handle = next_block();
    objects_.emplace(handle, std::move(object));
    return handle;
  }

  // Under a handle that was used before, and may not be forgotten yet.
  void add_again(const void* handle, Object object) {
    const std::lock_guard lock(mutex_);
    objects_.insert_or_assign(handle, std::move(object));
  }

  // NULL for what is not a handle, no longer one, or one of another kind.
  template <class T>
  std::shared_ptr<T> find(const void* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) {
      stale_ += was_given_out(handle) ? 1 : 0;
      return nullptr;
    }
    const auto* object = std::get_if<std::shared_ptr<T>>(&found->second);
    return object ? *object : nullptr;
  }

  template <class T>
  std::shared_ptr<T> take(const void* handle) {
    std::shared_ptr<T> object = find<T>(handle);
    const std::lock_guard lock(mutex_);
    if (object && objects_.erase(handle) == 0) return nullptr;  // another thread was faster
    return object;
  }

  // How many calls received a handle that is no longer valid.
  std::int64_t stale() {
    const std::lock_guard lock(mutex_);
    return stale_;
  }

  template <class Visit>
  void each(Visit visit) {
    const std::lock_guard lock(mutex_);
    for (const auto& [handle, object] : objects_) visit(handle, object);
  }

  // Forgets those that the predicate takes; returns how many.
  template <class Predicate>
  std::size_t drop(Predicate predicate) {
    const std::lock_guard lock(mutex_);
    return std::erase_if(objects_, [&](const auto& each) { return predicate(each.second); });
  }

 private:
  void* next_block();
  bool was_given_out(const void* handle) const;

  std::mutex mutex_;
  std::unordered_map<const void*, Object> objects_;
  std::byte* blocks_ = nullptr;
  std::size_t used_ = 0;
  std::int64_t stale_ = 0;
};

}  // namespace fletching::standin

#endif  // FLETCHING_STANDIN_HANDLES_HPP
