// SPDX-License-Identifier: Apache-2.0
//
// A copy of the formats of a schema, for comparing arrays with it after it was handed on.
#ifndef FLETCHING_DETAIL_SCHEMA_COPY_HPP
#define FLETCHING_DETAIL_SCHEMA_COPY_HPP

#include "fletching/abi.h"
#include "fletching/detail/tree.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/schema_builder.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// The views of the node are those of the schema, which was checked.
inline SchemaNode formats_of(const ArrowSchema& schema) {
  SchemaNode node{.format = schema.format};
  for (const ArrowSchema* child : children_of(schema)) node.children.push_back(formats_of(*child));
  if (schema.dictionary != nullptr) node.dictionary.push_back(formats_of(*schema.dictionary));
  return node;
}

/// A schema with the formats of another and without its names and metadata. Errors: EINVAL for one
/// that is malformed, see make_schema; ENOMEM.
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

#endif  // FLETCHING_DETAIL_SCHEMA_COPY_HPP
