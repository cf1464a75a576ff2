// SPDX-License-Identifier: Apache-2.0
//
// Extension types: the two keys of ArrowSchema.metadata that make one. C Data Interface, "Extension
// types"; "Canonical Extension Types".
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

/// Booleans of one byte each. Its storage is int8, and its metadata empty.
inline constexpr std::string_view kBool8 = "arrow.bool8";
/// Tensors of one shape. Its storage is a fixed-size list of all their elements.
inline constexpr std::string_view kFixedShapeTensorName = "arrow.fixed_shape_tensor";
/// A type of another system. Its parameters are `type_name` and `vendor_name`: "bfloat16" and
/// "DLPack" of DLPack's type, whose storage docs/dlpack.md has.
inline constexpr std::string_view kOpaque = "arrow.opaque";

/// What makes a field one of an extension type. Points into ArrowSchema.metadata.
struct Extension {
  std::string_view name;      ///< empty: it is of none
  std::string_view metadata;  ///< the parameters, as the extension serializes them
};

namespace detail {

inline Result<Extension> read_extension(const char* metadata) {
  Result<MetadataView> pairs = MetadataView::read(metadata);
  if (!pairs) return Error{EINVAL, "ArrowSchema." + pairs.error().message()};
  return Extension{pairs->find(kExtensionNameKey).value_or(""),
                   pairs->find(kExtensionMetadataKey).value_or("")};
}

}  // namespace detail

/// The extension type of a field: two texts that point into schema.metadata, empty when there is
/// none. Negative counts in the metadata are the error EINVAL; nothing says how long the whole is,
/// so that wrong positive ones cannot be noticed. EINVAL too for a schema that is released.
inline Result<Extension> find_extension(const ArrowSchema& schema) noexcept {
  if (schema.release == nullptr) {
    return detail::plain_error(EINVAL,
                               "find_extension: schema is released: expected a live schema");
  }
  return detail::guarded([&] { return detail::read_extension(schema.metadata); });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_EXTENSION_HPP
