// SPDX-License-Identifier: Apache-2.0
//
// Extension types: their two keys in ArrowSchema.metadata. C Data Interface, "Extension types";
// "Canonical Extension Types".
#ifndef FLETCHING_EXTENSION_HPP
#define FLETCHING_EXTENSION_HPP

#include <cerrno>
#include <string>
#include <string_view>

#include "fletching/abi.h"
#include "fletching/metadata.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// The metadata keys of an extension type.
inline constexpr std::string_view kExtensionNameKey = "ARROW:extension:name";
inline constexpr std::string_view kExtensionMetadataKey = "ARROW:extension:metadata";

/// Booleans of one byte each. The storage is int8, and the metadata is empty.
inline constexpr std::string_view kBool8 = "arrow.bool8";
/// Tensors of one shape. The storage is a fixed-size list of all elements.
inline constexpr std::string_view kFixedShapeTensorName = "arrow.fixed_shape_tensor";
/// A type of another system. Its parameters are `type_name` and `vendor_name`: "bfloat16" and
/// "DLPack" for a DLPack type, whose storage is in docs/dlpack.md.
inline constexpr std::string_view kOpaque = "arrow.opaque";

/// The extension type of a field. Points into ArrowSchema.metadata.
struct Extension {
  std::string_view name;      ///< empty: not an extension type
  std::string_view metadata;  ///< the serialized parameters
};

namespace detail {

inline Result<Extension> read_extension(const char* metadata) {
  Result<MetadataView> pairs = MetadataView::read(metadata);
  if (!pairs) return Error{EINVAL, "ArrowSchema." + pairs.error().message()};
  return Extension{pairs->find(kExtensionNameKey).value_or(""),
                   pairs->find(kExtensionMetadataKey).value_or("")};
}

}  // namespace detail

/// Returns the extension type of a field, as views of schema.metadata; empty if it has none.
/// Errors: EINVAL for negative counts in the metadata and for a released schema. Positive counts
/// that are too large cannot be detected, because the metadata has no total length.
inline Result<Extension> find_extension(const ArrowSchema& schema) noexcept {
  if (schema.release == nullptr) {
    return detail::plain_error(EINVAL,
                               "find_extension: schema is released: expected a live schema");
  }
  return detail::guarded([&] { return detail::read_extension(schema.metadata); });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_EXTENSION_HPP
