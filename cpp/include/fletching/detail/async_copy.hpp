// SPDX-License-Identifier: Apache-2.0
//
// What the other side of an async stream hands over for the length of a call: checked and copied.
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

/// Of a block that we are going to hand over; empty, and then NULL is handed over. Errors: EINVAL
/// when it is not one whole block.
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

/// The error text for a call of on_schema that lacks something; NULL when it is complete.
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

/// What a schema and all its arrays have in common and is cheap to compare.
struct OuterShape {
  std::int64_t n_children = 0;
  bool has_dictionary = false;

  /// Of a schema or an array.
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

/// Of a batch on its way to a stream or out of one. Errors: EINVAL when it is released, or on
/// another type of device than the stream.
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

/// What a stream promises of every batch.
struct StreamPromise {
  OuterShape shape;  // of the schema
  ArrowDeviceType device_type = 0;
  Schema formats;  // of the schema, in strict mode; else released
};

/// Errors: EINVAL for a batch that is released, on another type of device than the stream or not of
/// its schema, with the rule. `formats` may be NULL. It has one return, so that nothing is copied.
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
/// Cheap: false does not mean that the batch is wrong; check_promise decides.
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
