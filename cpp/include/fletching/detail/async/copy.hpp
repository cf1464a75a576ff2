// SPDX-License-Identifier: Apache-2.0
//
// Checks and copies of arguments that the other side of an async stream lends for one call.
#ifndef FLETCHING_DETAIL_ASYNC_COPY_HPP
#define FLETCHING_DETAIL_ASYNC_COPY_HPP

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/abi.h"
#include "fletching/check_array.hpp"
#include "fletching/detail/text.hpp"
#include "fletching/metadata.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/tables.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Bytes of an ArrowSchema.metadata block. NULL for missing metadata, which needs no allocation.
using MetadataCopy = std::unique_ptr<const std::string>;

/// Errors: EINVAL if the block is malformed, ENOMEM.
inline Status copy_metadata(const char* block, MetadataCopy* copy) noexcept {
  if (block == nullptr) return {};
  Result<MetadataView> view = MetadataView::read(block);
  if (!view.ok()) return std::move(view).error();
  return guarded([&]() -> Status {
    *copy = std::make_unique<const std::string>(view->block());
    return {};
  });
}

/// Checks an outgoing block. An empty block is passed on as NULL. Errors: EINVAL if it is not
/// exactly one block.
inline Status check_metadata(std::string_view block) noexcept {
  if (block.empty()) return {};
  Result<MetadataView> view = MetadataView::read(block.data(), block.size());
  if (!view.ok()) return std::move(view).error();
  if (view->block().size() == block.size()) return {};
  return plain_error(EINVAL, "metadata: bytes after the last pair");
}

inline std::string_view view_of(const MetadataCopy& copy) noexcept {
  return copy == nullptr ? std::string_view() : std::string_view(*copy);
}

/// Returns the error message for an incomplete on_schema call, or NULL if the call is complete.
inline const char* missing_for_schema(const ArrowAsyncDeviceStreamHandler& handler,
                                      const ArrowSchema* schema) noexcept {
  if (schema == nullptr || schema->release == nullptr)
    return "on_schema: schema is NULL or released: expected a schema";
  if (handler.producer == nullptr) return "handler.producer: NULL: expected an ArrowAsyncProducer";
  if (handler.producer->request == nullptr) return "producer.request: NULL: expected a callback";
  if (handler.producer->cancel == nullptr) return "producer.cancel: NULL: expected a callback";
  return nullptr;
}

inline Error not_positive(const char* what, std::int64_t n) noexcept {
  return error_with(EINVAL, [&] {
    return std::string(what) + " is not positive: expected 1 or more, got " + std::to_string(n);
  });
}

inline Error overlapping() noexcept {
  return plain_error(EINVAL, "handler call: overlaps another one: expected one call at a time");
}

/// Properties shared by a schema and its arrays that are cheap to compare.
struct OuterShape {
  std::int64_t n_children = 0;
  bool has_dictionary = false;

  /// Returns the shape of a schema or an array.
  template <class Raw>
  static OuterShape of(const Raw& raw) noexcept {
    return {raw.n_children, raw.dictionary != nullptr};
  }

  bool operator==(const OuterShape&) const = default;
};

inline Error other_shape() noexcept {
  return plain_error(EINVAL,
                     "batch: children or dictionary differ from the stream's schema (rule "
                     "async-next.same-schema)");
}

inline bool is_on(const ArrowDeviceArray& batch, ArrowDeviceType expected) noexcept {
  return batch.array.release != nullptr && batch.device_type == expected;
}

/// Checks a batch that enters or leaves a stream. Errors: EINVAL if it is released, or on another
/// device type than the stream.
inline Status check_device(const ArrowDeviceArray& batch, ArrowDeviceType expected) noexcept {
  if (batch.array.release == nullptr) {
    return plain_error(EINVAL, "batch: released: expected a live array");
  }
  if (batch.device_type == expected) return {};
  return error_with(EINVAL, [&] {
    return "batch: device_type differs from the stream's: expected " + device_name(expected) +
           ", got " + device_name(batch.device_type) + " (rule async-producer.one-device-type)";
  });
}

/// Properties that a stream promises for every batch.
struct StreamPromise {
  OuterShape shape;  // the schema's shape
  ArrowDeviceType device_type = 0;
  Schema formats;  // the schema in strict mode; otherwise released
};

/// Errors: EINVAL, naming the rule, if the batch is released, on another device type than the
/// stream or does not match its schema. `formats` may be NULL. A single return avoids copies.
inline Status check_batch_of(const ArrowDeviceArray& batch, const OuterShape& shape,
                             ArrowDeviceType device_type, const Schema* formats) noexcept {
  Status checked = check_device(batch, device_type);
  if (checked.ok() && formats != nullptr) {
    checked = check_schema(*formats, batch, "async-next.same-schema");
  } else if (checked.ok() && OuterShape::of(batch.array) != shape) {
    checked = other_shape();
  }
  return checked;
}
/// Cheap check. False does not mean that the batch is wrong: check_promise() decides.
inline bool keeps_promise(const ArrowDeviceArray& batch, const StreamPromise& promise) noexcept {
  return !promise.formats && is_on(batch, promise.device_type) &&
         OuterShape::of(batch.array) == promise.shape;
}

inline Status check_promise(const ArrowDeviceArray& batch, const StreamPromise& promise) noexcept {
  const Schema* formats = promise.formats ? &promise.formats : nullptr;
  return check_batch_of(batch, promise.shape, promise.device_type, formats);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ASYNC_COPY_HPP
