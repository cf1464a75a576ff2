// SPDX-License-Identifier: Apache-2.0
// Handles. A handle is the address of a readable block that contains no handle, so passing a handle
// instead of its address, or the reverse, gives an unknown value and fails. Handles are looked up,
// never dereferenced, and never reused, except for primary contexts, where drivers reuse them too.
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

  // Adds under a handle that was used before and may not be forgotten yet.
  void add_again(const void* handle, Object object) {
    const std::lock_guard lock(mutex_);
    objects_.insert_or_assign(handle, std::move(object));
  }

  // NULL if the value is not a handle, is stale, or names an object of another kind.
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

  // Number of calls that received a stale handle.
  std::int64_t stale() {
    const std::lock_guard lock(mutex_);
    return stale_;
  }

  template <class Visit>
  void each(Visit visit) {
    const std::lock_guard lock(mutex_);
    for (const auto& [handle, object] : objects_) visit(handle, object);
  }

  // Forgets the objects that match the predicate and returns their number.
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
