// SPDX-License-Identifier: Apache-2.0
//
// A schema or an array with several users. Views of its columns, or of all of it, are separate
// structs that keep it alive.
#ifndef FLETCHING_SHARED_HPP
#define FLETCHING_SHARED_HPP

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "fletching/abi.h"
#include "fletching/detail/ownership/block.hpp"
#include "fletching/detail/ownership/tree.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// Shares a schema, an array, or a device array with its event, without copying strings or buffers.
///
/// Ownership: the struct is moved in and does not change. It is released when the last Shared, the
/// last view, and the last child moved out of a view are released, on the thread of that release. A
/// view is a normal struct: its consumer may move it, release it, and move children out, without an
/// effect on other views.
///
/// Threads: several threads may copy a Shared and make views at once.
template <class Raw>
  requires NestedStruct<Raw>
class Shared {
 public:
  /// Moves `source` in. One allocation. Errors: EINVAL if it is released; ENOMEM. On error the
  /// caller still owns it.
  static Result<Shared> make(Owner<Raw>&& source) noexcept {
    return detail::guarded([&]() -> Result<Shared> {
      if (source.is_released())
        return Error(EINVAL, "share: struct is released: expected a live struct");
      // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guarded catches it
      return Shared(detail::Share(new Held(std::move(source))));
    });
  }

  /// The struct, for reading. Valid for the lifetime of this Shared.
  const Owner<Raw>& operator*() const noexcept {
    return static_cast<const Held*>(parent_.block())->object;
  }
  const Owner<Raw>* operator->() const noexcept { return &**this; }

  /// Whether no other Shared, view or child of a view keeps the struct alive.
  [[nodiscard]] bool is_unique() const noexcept { return parent_.is_only(); }

  /// Returns child `index` (from 0) as a separate struct, with the device and event of a device
  /// array. One allocation; no data is copied.
  ///
  /// Errors: EINVAL if the child does not exist, if it or a descendant was moved out, or if it is
  /// malformed: NULL, a schema without a format, n_children negative, above 2^22 or without a list,
  /// more than 256 levels, more than 2^22 structs; ENOMEM.
  [[nodiscard]] Result<Owner<Raw>> column(int64_t index) const noexcept {
    return detail::guarded([&]() -> Result<Owner<Raw>> {
      const auto children = (**this).children();
      if (index < 0 || index >= static_cast<int64_t>(children.size())) {
        return Error(EINVAL, "column: child " + std::to_string(index) +
                                 ": no such child: expected an index below " +
                                 std::to_string(children.size()));
      }
      return view_of(children[static_cast<std::size_t>(index)]);
    });
  }

  /// Returns the whole struct as a separate struct. One allocation; no data is copied. Errors: as
  /// column.
  [[nodiscard]] Result<Owner<Raw>> view() const noexcept {
    return detail::guarded([&] { return view_of(&detail::base(*(**this).get())); });
  }

 private:
  using Base = detail::BaseOf<Raw>;
  using Held = detail::SharedObject<Owner<Raw>>;
  using Block = detail::Block<Base, char, detail::Share>;

  explicit Shared(detail::Share parent) noexcept : parent_(std::move(parent)) {}

  // Counts the structs from `shown` downwards, and checks that each can be copied.
  static Result<int64_t> count(const Base* shown) {
    int64_t structs = 0;
    Status walked = detail::walk("view", shown, [&](const Base& node) -> const char* {
      if (node.release == nullptr) return "is released or moved out";
      if constexpr (std::same_as<Base, ArrowSchema>) {
        if (node.format == nullptr) return "has format NULL";
      }
      ++structs;
      return nullptr;
    });
    if (!walked) return std::move(walked).error();
    return structs;
  }

  // Copies the structs from `from` downwards to `to`. Children are stored in the block.
  static void copy(const Base& from, Base* to, Block* block, int64_t* used) noexcept {
    *to = from;
    detail::join_block(to, block);
    if (from.n_children > 0) {
      const int64_t first = *used;
      *used += from.n_children;
      to->children = block->pointers() + first;
      for (int64_t i = 0; i < from.n_children; ++i) {
        to->children[i] = block->structs() + first + i;
        copy(*from.children[i], to->children[i], block, used);
      }
    }
    if (from.dictionary != nullptr) {
      to->dictionary = block->structs() + (*used)++;
      copy(*from.dictionary, to->dictionary, block, used);
    }
  }

  [[nodiscard]] Result<Owner<Raw>> view_of(const Base* shown) const {
    const Result<int64_t> structs = count(shown);
    if (!structs) return structs.error();
    Block* block = Block::make(*structs - 1, 0, detail::Share(parent_));
    if (block == nullptr) return detail::out_of_memory();
    block->shares.store(*structs, std::memory_order_relaxed);

    Result<Owner<Raw>> view(std::in_place);
    Raw* raw = view->get();
    if constexpr (std::same_as<Raw, ArrowDeviceArray>) {
      const ArrowDeviceArray& parent = ***this;
      raw->device_id = parent.device_id;
      raw->device_type = parent.device_type;
      raw->sync_event = parent.sync_event;
    }
    int64_t used = 0;
    copy(*shown, &detail::base(*raw), block, &used);
    return view;
  }

  friend void let_go(Shared& shared, detail::ReleaseStack& stack) noexcept {
    let_go(shared.parent_, stack);
  }

  detail::Share parent_;
};

using SharedSchema = Shared<ArrowSchema>;
using SharedArray = Shared<ArrowArray>;
using SharedDeviceArray = Shared<ArrowDeviceArray>;

/// Shares `source`; see Shared.
template <class Raw>
Result<Shared<Raw>> share(Owner<Raw>&& source) noexcept {
  return Shared<Raw>::make(std::move(source));
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_SHARED_HPP
