// SPDX-License-Identifier: Apache-2.0
//
// Copies the formats of a schema, to compare arrays with it after the schema was passed on.
#ifndef FLETCHING_DETAIL_OWNERSHIP_SCHEMA_COPY_HPP
#define FLETCHING_DETAIL_OWNERSHIP_SCHEMA_COPY_HPP

#include "fletching/abi.h"
#include "fletching/detail/ownership/tree.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/schema_builder.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// The node's views refer to the schema, which must be well-formed.
inline SchemaNode formats_of(const ArrowSchema& schema) {
  SchemaNode node{.format = schema.format};
  for (const ArrowSchema* child : children_of(schema)) node.children.push_back(formats_of(*child));
  if (schema.dictionary != nullptr) node.dictionary.push_back(formats_of(*schema.dictionary));
  return node;
}

/// Returns a schema with the same formats, without names and metadata. Errors: EINVAL if the schema
/// is malformed, see make_schema(); ENOMEM.
inline Result<Schema> copy_formats(const ArrowSchema& schema) noexcept {
  return guarded([&]() -> Result<Schema> {
    const Status sound = walk("on_schema", &schema, [](const ArrowSchema& node) -> const char* {
      if (node.release == nullptr) return "is released";
      return node.format == nullptr ? "has format NULL" : nullptr;
    });
    if (!sound) return sound.error();
    return make_schema(formats_of(schema));
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_OWNERSHIP_SCHEMA_COPY_HPP
