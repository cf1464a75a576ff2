// SPDX-License-Identifier: Apache-2.0
//
// One allocation for everything below an exported struct: the structs of its children, the lists of
// pointers, and the object that owns the data. Used by the builders and the shared arrays; not for
// users.
#ifndef FLETCHING_DETAIL_OWNERSHIP_BLOCK_HPP
#define FLETCHING_DETAIL_OWNERSHIP_BLOCK_HPP

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include "fletching/abi.h"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

class ReleaseStack;

/// Head of every block and hook, with its destructor. The stack is NULL in the outermost release.
struct Destroyable {
  void (*destroy)(Destroyable*, ReleaseStack*) noexcept = nullptr;
  Destroyable* below = nullptr;  // next node on a ReleaseStack
};

/// Blocks and hooks to destroy, the next one on top. Destroys nested owners in the order of
/// recursion, at any depth.
class ReleaseStack {
 public:
  void push(Destroyable* node) noexcept {
    node->below = top_;
    top_ = node;
  }

  void run() noexcept {
    while (top_ != nullptr) {
      Destroyable* const node = std::exchange(top_, top_->below);
      node->destroy(node, this);
    }
  }

 private:
  Destroyable* top_ = nullptr;
};

/// An object with a let_go() overload, such as an owner: releases its contents through a stack.
template <class Object>
concept Nested = requires(Object& object, ReleaseStack& onto) { let_go(object, onto); };

/// Destroys a node with an object.
template <class Node>
void destroy_node(Destroyable* head, [[maybe_unused]] ReleaseStack* stack) noexcept {
  auto* const node = static_cast<Node*>(head);
  if constexpr (Nested<decltype(node->object)>) {
    node->destroy = [](Destroyable* empty, ReleaseStack* /*stack*/) noexcept {
      Node::free(static_cast<Node*>(empty));
    };
    ReleaseStack first;
    ReleaseStack& onto = stack == nullptr ? first : *stack;
    onto.push(node);
    let_go(node->object, onto);
    first.run();
  } else {
    Node::free(node);
  }
}

/// Head of every block. Each struct whose private_data points to a block holds a reference.
struct BlockHead : Destroyable {
  std::atomic<int64_t> shares;
};

/// Drops `count` references. Returns true if they were the last ones: the caller must destroy the
/// block.
inline bool return_shares(BlockHead* block, int64_t count) noexcept {
  // In the first case no other thread holds a reference, so the subtraction is not needed.
  return block->shares.load(std::memory_order_acquire) == count ||
         block->shares.fetch_sub(count, std::memory_order_acq_rel) == count;
}

inline void destroy_block(BlockHead* block) noexcept { block->destroy(block, nullptr); }

/// Drops `count` references and destroys the block if they were the last ones.
inline void give_back(BlockHead* block, int64_t count) noexcept {
  if (return_shares(block, count)) destroy_block(block);
}

/// A reference to a block, or none. The last one destroys the block.
class Share {
 public:
  Share() noexcept = default;
  /// Adopts a reference that is already counted.
  explicit Share(BlockHead* block) noexcept : block_(block) {}
  Share(const Share& other) noexcept : block_(other.block_) {
    if (block_ != nullptr) block_->shares.fetch_add(1, std::memory_order_relaxed);
  }
  Share(Share&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Share& operator=(Share other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Share() {
    if (block_ != nullptr) give_back(block_, 1);
  }
  bool operator==(const Share&) const = default;

  [[nodiscard]] BlockHead* block() const noexcept { return block_; }
  /// Whether this is the last reference. Synchronizes with the earlier owners.
  [[nodiscard]] bool is_only() const noexcept {
    return block_ != nullptr && block_->shares.load(std::memory_order_acquire) == 1;
  }

  friend void let_go(Share& share, ReleaseStack& stack) noexcept {
    BlockHead* const block = std::exchange(share.block_, nullptr);
    if (block != nullptr && return_shares(block, 1)) stack.push(block);
  }

 private:
  BlockHead* block_ = nullptr;
};

/// An object that is destroyed with its last reference. Replaces std::shared_ptr, because <memory>
/// takes as long to compile as all includes of owner.hpp.
template <class Object>
struct SharedObject : BlockHead {
  template <class... Arguments>
  explicit SharedObject(Arguments&&... arguments)
      : BlockHead{{&destroy_node<SharedObject>}, {1}},
        object{std::forward<Arguments>(arguments)...} {}

  static void free(SharedObject* self) noexcept { delete self; }

  Object object;
};

template <class Base>
void release_in_block(Base* self) noexcept;

/// Releases a struct outside the block, unless it was moved out. Rare.
template <class Base>
FLETCHING_DETAIL_COLD void release_foreign(Base* below) noexcept {
  if (below->release != nullptr) below->release(below);
}

/// Releases the children and the dictionary of *self. The callback of a struct outside the block
/// may free *self, so *self is read before any callback runs. Returns the number of references to
/// *block to drop: unmodified children of the block are released without a call.
template <class Base>
int64_t release_below(const Base* self, const BlockHead* block) noexcept {
  int64_t shares = 0;
  Base* parents = nullptr;  // released parents with live children, linked by private_data
  const auto release = [&](Base* below) {
    if (below->release == &release_in_block<Base> && below->private_data == block) [[likely]] {
      const auto dictionary = reinterpret_cast<intptr_t>(below->dictionary);
      if ((below->n_children | dictionary) != 0) [[unlikely]] {
        below->private_data = std::exchange(parents, below);
      }
      below->release = nullptr;
      return;
    }
    --shares;
    release_foreign(below);
  };
  while (true) {
    Base* const dictionary = self->dictionary;
    shares += self->n_children;
    Base* const* const end = self->children + self->n_children;
    for (Base* const* child = self->children; child != end; ++child) release(*child);
    if (dictionary != nullptr) {
      ++shares;
      release(dictionary);
    }
    if (parents == nullptr) return shares;
    self = std::exchange(parents, static_cast<Base*>(parents->private_data));
  }
}

/// Releases a struct that points to a block. Returns true if it held the last reference.
template <class Base>
inline bool leave_block(Base* self, BlockHead* block) noexcept {
  int64_t shares = 1;
  self->release = nullptr;
  if (self->n_children != 0 || self->dictionary != nullptr) shares += release_below(self, block);
  return return_shares(block, shares);
}

/// Release callback of the structs that share a block. A second call has no effect.
template <class Base>
void release_in_block(Base* self) noexcept {
  if (self->release == nullptr) [[unlikely]]
    return;
  auto* block = static_cast<BlockHead*>(self->private_data);
  if (leave_block(self, block)) destroy_block(block);
}

/// Block with the owning object, structs of type Base, a pointer for each of them, and elements of
/// type Extra. All but the object are uninitialized memory.
template <class Base, class Extra, class Object>
struct Block : BlockHead {
  static_assert(std::is_nothrow_destructible_v<Object>, "a release callback cannot throw");
  static_assert(
      std::is_nothrow_move_constructible_v<Object>,
      "object: expected a type whose move is noexcept; hint: put it into a std::unique_ptr");
  static_assert(alignof(Object) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__,
                "object: alignment too wide; hint: put it into a std::unique_ptr");
  static_assert(alignof(Extra) <= alignof(Base*));

  /// Returns a block with a reference count of zero, or NULL if out of memory. Counts must not be
  /// negative. `object` is moved from only on success.
  static Block* make(int64_t structs, int64_t extras, Object&& object) noexcept {
    constexpr int64_t kMost = (std::numeric_limits<ptrdiff_t>::max)() / 4;
    constexpr size_t kPerStruct = sizeof(Base) + sizeof(Base*);
    if (structs > kMost / int64_t{kPerStruct} || extras > kMost / int64_t{sizeof(Extra)}) {
      return nullptr;
    }
    const size_t room =
        static_cast<size_t>(structs) * kPerStruct + static_cast<size_t>(extras) * sizeof(Extra);
    void* memory = allocate(head_size() + room);
    if (memory == nullptr) return nullptr;
    return new (memory) Block(structs, std::move(object));
  }

  static void free(Block* block) noexcept {
    block->~Block();
    ::operator delete(static_cast<void*>(block));
  }

  [[nodiscard]] Base* structs() noexcept {
    return reinterpret_cast<Base*>(reinterpret_cast<char*>(this) + head_size());
  }
  [[nodiscard]] Base** pointers() noexcept {
    return reinterpret_cast<Base**>(structs() + n_structs);
  }
  [[nodiscard]] Extra* extra() noexcept {
    return reinterpret_cast<Extra*>(reinterpret_cast<char*>(pointers() + n_structs));
  }

  int64_t n_structs;
  Object object;

 private:
  Block(int64_t structs, Object&& owning) noexcept
      : BlockHead{{&destroy_node<Block>}, {0}}, n_structs(structs), object(std::move(owning)) {}

  // Returns NULL if out of memory. The nothrow operator calls the throwing one, which costs 9 more
  // instructions.
  static void* allocate(size_t size) noexcept {
#if defined(__cpp_exceptions)
    return attempt([&] { return ::operator new(size); }, []() -> void* { return nullptr; });
#else
    return ::operator new(size, std::nothrow);
#endif
  }

  static constexpr size_t head_size() noexcept {
    return (sizeof(Block) + alignof(Base) - 1) / alignof(Base) * alignof(Base);
  }
};

/// Release callback of a struct without children that has a block to itself, whose object is not
/// nested. It counts no references and calls no `destroy`. A second call has no effect.
template <class Node, class Base>
void release_with_block(Base* self) noexcept {
  if (self->release == nullptr) [[unlikely]]
    return;
  self->release = nullptr;
  Node::free(static_cast<Node*>(static_cast<BlockHead*>(self->private_data)));
}

/// Makes a struct point to a block and hold a reference to it. The caller counts the reference.
template <class Base>
void join_block(Base* self, BlockHead* block,
                void (*release)(Base*) = &release_in_block<Base>) noexcept {
  self->release = release;
  self->private_data = block;
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_OWNERSHIP_BLOCK_HPP
