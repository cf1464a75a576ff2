// SPDX-License-Identifier: Apache-2.0
//
// Copies of what the other side of an async stream hands over for the length of a call.
#ifndef FLETCHING_ASYNC_COPY_HPP
#define FLETCHING_ASYNC_COPY_HPP

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/metadata.hpp"
#include "fletching/result.hpp"
#include "fletching/text.hpp"

namespace fletching::detail {

/// The bytes of a block that is encoded as ArrowSchema.metadata; none for NULL, which costs
/// nothing.
using MetadataCopy = std::unique_ptr<const std::string>;

/// Errors: EINVAL for a block that cannot be read, ENOMEM.
inline Status copy_metadata(const char* block, MetadataCopy* copy) noexcept {
  if (block == nullptr) return {};
  Result<MetadataView> view = MetadataView::read(block);
  if (!view.ok()) return std::move(view).error();
  return guarded([&]() -> Status {
    *copy = std::make_unique<const std::string>(view->block());
    return {};
  });
}

inline std::string_view view_of(const MetadataCopy& copy) noexcept {
  return copy == nullptr ? std::string_view() : std::string_view(*copy);
}

/// What the other side says of its error, fit to print; empty for NULL, and when memory runs out.
inline std::string copy_message(const char* message) noexcept {
  Result<std::string> copy = guarded([&] { return Result<std::string>(printable(message)); });
  return copy.ok() ? *std::move(copy) : std::string();
}

}  // namespace fletching::detail

#endif  // FLETCHING_ASYNC_COPY_HPP
