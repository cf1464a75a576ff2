// SPDX-License-Identifier: Apache-2.0
//
// The rules of ArrowArray and ArrowDeviceArray.
#include <algorithm>
#include <array>
#include <cstdint>

#include "structs.hpp"

namespace fletching::conformance {
namespace {

// --- Producer rules: fields ---

TEST(Arrays, ArrayLengthSet) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.array.length = -1; }),
        "int32.whole");
}

TEST(Arrays, ArrayNullCountRange) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.array.null_count = -2; }),
        "int32.whole");
}

TEST(Arrays, ArrayNullCountCorrect) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.array.null_count = 1; }),
        "union.dense");
}

TEST(Arrays, ArrayOffsetNotNegative) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.array.offset = -1; }),
        "int32.whole");
}

TEST(Arrays, ArrayNBuffersOfType) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.array.n_buffers = 1; }),
        "int32.whole");
}

TEST(Arrays, ArrayViewSizesBuffer) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.array.n_buffers = 2; }),
        "utf8-view.whole");
}

TEST(Arrays, ArrayBuffersCount) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.array.buffers = nullptr; }),
        "int32.whole");
}

TEST(Arrays, ArrayBuffersLargeEnough) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.array.offset = INT64_MAX; }),
        "int32.whole");
}

TEST(Arrays, ArrayBuffersNullOnlyWhen) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) {
          static const void* buffers[2];
          out.array.buffers = buffers;
        }),
        "int32.without-bitmap");
}

TEST(Arrays, ArrayNChildrenOfType) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.array.n_children = 1; }),
        "struct.whole");
}

TEST(Arrays, ArrayChildrenCount) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) {
          static ArrowArray* children[2];
          children[0] = out.array.children[0];
          out.array.children = children;
        }),
        "struct.whole");
}

TEST(Arrays, ArrayChildrenNullOnlyWhenNone) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.array.children = nullptr; }),
        "struct.whole");
}

TEST(Arrays, ArrayDictionaryWhenEncoded) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.array.dictionary = nullptr; }),
        "dictionary-int8.whole");
}

TEST(Arrays, ArrayDictionaryNullOtherwise) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) {
          static ArrowArray dictionary;
          out.array.dictionary = &dictionary;
        }),
        "int32.whole");
}

TEST(Arrays, ArrayReleaseSet) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.array.release = nullptr; }),
        "int32.whole");
}

// Imitates memory that was freed with the input array and reused.
const auto kFreedValues = [](ArrowDeviceArray& out) {
  static std::int32_t values[3];
  static const void* buffers[2]{nullptr, values};
  out.array.buffers = buffers;
};

TEST(Arrays, ReleaseMembersOwnedByProducer) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { kFreedValues(out); }), "array.good",
        "expected the values 1, 2, 3");
}

TEST(Children, DeviceArrayMembersOwnedByProducer) {
  FletchingSubject subject = good();
  subject.child = [](void* context, ArrowSchema* schema, ArrowDeviceArray* in, std::int64_t index,
                     ArrowDeviceArray* out, FletchingMessage* message) {
    const int code = good().child(context, schema, in, index, out, message);
    if (code == 0) kFreedValues(*out);
    return code;
  };
  finds(subject, "array.good-children", "expected the values 1, 2, 3");
}

// --- Producer rules: the content of buffers ---

/// Replaces a value in a copy of a buffer.
template <class Value, int kBuffer, int kCount, int kAt, Value kTo>
void set(ArrowArray& array) {
  static std::array<Value, kCount> values;
  static std::array<const void*, 5> buffers;
  std::copy_n(static_cast<const Value*>(array.buffers[kBuffer]), kCount, values.begin());
  values[kAt] = kTo;
  std::copy_n(array.buffers, array.n_buffers, buffers.begin());
  buffers[kBuffer] = values.data();
  array.buffers = buffers.data();
}

template <class Value, int kBuffer, int kCount, int kAt, Value kTo>
FletchingSubject sets() {
  return arrays_with([](ArrowSchema&, ArrowDeviceArray& out) {
    set<Value, kBuffer, kCount, kAt, kTo>(out.array);
  });
}

/// The same in the first child, which contains the run ends.
template <int kCount, int kAt, std::int16_t kTo>
FletchingSubject sets_run_end() {
  return arrays_with([](ArrowSchema&, ArrowDeviceArray& out) {
    static ArrowArray ends;
    static std::array<ArrowArray*, 2> children;
    ends = *out.array.children[0];
    set<std::int16_t, 1, kCount, kAt, kTo>(ends);
    children = {&ends, out.array.children[1]};
    out.array.children = children.data();
  });
}

TEST(Arrays, LayoutOffsetsMonotone) {
  finds(sets<std::int32_t, 1, 3, 2, 1>(), "offsets.binary-descending-good");
}
TEST(Arrays, LayoutOffsetsInRange) {
  finds(sets<std::int32_t, 1, 3, 0, -1>(), "offsets.binary-negative-good");
}
TEST(Arrays, LayoutListViewInRange) {
  finds(sets<std::int32_t, 1, 2, 1, -1>(), "list-view.offset-negative-good");
}
TEST(Arrays, LayoutUtf8) { finds(sets<std::uint8_t, 2, 9, 0, 0xFF>(), "utf8.whole"); }
TEST(Arrays, LayoutViewLength) {
  finds(sets<std::int32_t, 1, 4, 0, -1>(), "utf8-view.length-negative-good");
}
TEST(Arrays, LayoutViewPadding) {
  finds(sets<std::int32_t, 1, 4, 0, 11>(), "utf8-view.padding-good");
}
TEST(Arrays, LayoutViewInRange) {
  finds(sets<std::int32_t, 1, 4, 2, 2>(), "utf8-view.index-too-large-good");
}
TEST(Arrays, LayoutViewPrefix) { finds(sets<std::int32_t, 1, 4, 1, 0>(), "utf8-view.prefix-good"); }
TEST(Arrays, LayoutRunEndsAscending) { finds(sets_run_end<2, 0, 0>(), "run-ends-16.zero-good"); }
TEST(Arrays, LayoutRunEndsCover) { finds(sets_run_end<2, 1, 2>(), "run-ends-16.short-good"); }
TEST(Arrays, LayoutUnionTypeIds) {
  finds(sets<std::int8_t, 0, 2, 1, 6>(), "sparse-union.id-between-good");
}
TEST(Arrays, LayoutUnionOffsetsInRange) {
  finds(sets<std::int32_t, 1, 2, 1, 2>(), "dense-union.offset-beyond-good");
}
TEST(Arrays, LayoutUnionOffsetsAscending) {
  finds(sets<std::int8_t, 0, 2, 1, 5>(), "dense-union.offsets-descending-good");
}
TEST(Arrays, LayoutDictionaryIndicesInRange) {
  finds(sets<std::int8_t, 1, 2, 1, 2>(), "dictionary-int8.index-too-large-good");
}

// --- Producer rules: release ---

TEST(ArrayConsumers, ReleaseAddressIndependent) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) {
          static ArrowArray* at;
          at = &out.array;
          out.array.release = [](ArrowArray* self) {
            if (self == at) release_inner(self);
            self->release = nullptr;
          };
        }),
        "array-consumer.plain", "not released: [1-9]");
}

TEST(ArrayConsumers, ReleaseWalksChildren) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) {
          out.array.release = [](ArrowArray* self) {
            for (std::int64_t i = 0; i < self->n_children; ++i) {
              self->children[i]->release = nullptr;
            }
            release_inner(self);
            self->release = nullptr;
          };
        }),
        "array-consumer.plain", "not released: [1-9]");
}

TEST(ArrayConsumers, ReleaseMarksReleased) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) {
          out.array.release = &release_inner<ArrowArray>;
        }),
        "array-consumer.plain", "release of an array left itself set");
}

TEST(ArrayConsumers, MoveNoStoredAddress) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) {
          static ArrowArray* at;
          at = &out.array;
          out.array.release = [](ArrowArray* self) {
            release_inner(self);
            at->release = nullptr;
          };
        }),
        "array-consumer.plain", "release of an array left itself set");
}

// The consumer overwrites the location that it moved the array from.
TEST(ArrayConsumers, MoveNoInnerPointers) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) {
          static ArrowArray inner;
          inner = *within(&out.array);
          delete within(&out.array);
          out.array.private_data = &out.array.length;
          out.array.release = [](ArrowArray* self) {
            const bool is_whole = *static_cast<std::int64_t*>(self->private_data) == inner.length;
            if (is_whole) inner.release(&inner);
            self->release = nullptr;
          };
        }),
        "array-consumer.plain", "not released: [1-9]");
}

const auto kFreesNothing = [](ArrowSchema&, ArrowDeviceArray& out) {
  out.array.release = [](ArrowArray* self) { self->release = nullptr; };
};

TEST(Arrays, ReleaseFreesData) {
  finds(arrays_with(kFreesNothing), "array.good", "not released: 1 structs");
}

TEST(CatalogueArrays, DeviceArrayReleaseFreesDeviceData) {
  finds(arrays_with(kFreesNothing), "int32", "expected 2 releases, got 1");
}

// --- Consumer rules ---

TEST(Arrays, ArrayNullCountUnknownAccepted) {
  finds(
      takes_arrays_with([](ArrowDeviceArray& in) { return in.array.null_count < 0 ? EINVAL : 0; }),
      "int32.null-count-unknown", "expected success, got errno 22");
}

TEST(Arrays, ArrayBuffersNullAccepted) {
  finds(takes_arrays_with([](ArrowDeviceArray& in) {
          return in.array.buffers != nullptr && in.array.buffers[0] == nullptr ? EINVAL : 0;
        }),
        "int32.without-bitmap", "expected success, got errno 22");
}

TEST(Arrays, ArrayPrivateDataUntouched) {
  finds(takes_arrays_with([](ArrowDeviceArray& in) {
          in.array.private_data = nullptr;
          return 0;
        }),
        "int32.whole", "called twice, or on a struct that was changed");
}

/// Exports a released array as if it was valid.
FletchingSubject takes_what_is_released() {
  FletchingSubject subject = good();
  subject.array = [](void* context, ArrowSchema* schema, ArrowDeviceArray* in,
                     ArrowSchema* out_schema, ArrowDeviceArray* out, FletchingMessage* message) {
    if (in->array.release == nullptr) return 0;
    return good().array(context, schema, in, out_schema, out, message);
  };
  return subject;
}

TEST(Arrays, ReleaseCheckBeforeUse) {
  finds(takes_what_is_released(), "array.released", "expected an error, got success");
}

TEST(Arrays, DeviceArrayReleasedLikeArray) {
  finds(takes_what_is_released(), "array.released", "expected an error, got success");
}

TEST(Arrays, ReleaseNotOnChildren) {
  FletchingSubject subject = good();
  subject.array = [](void*, ArrowSchema*, ArrowDeviceArray* in, ArrowSchema*, ArrowDeviceArray* out,
                     FletchingMessage*) {
    *out = *in;
    out->array = around(in->array);
    in->array.release = nullptr;
    out->array.release = [](ArrowArray* self) {
      self->children[0]->release(self->children[0]);
      release_inner(self);
      self->release = nullptr;
    };
    return 0;
  };
  finds(subject, "array.good-children", "release of a child array was called in its parent");
}

TEST(Arrays, DeviceArrayReleaseThroughArray) {
  finds(takes_arrays_with([](ArrowDeviceArray& in) {
          ArrowArray other{};
          in.array.release(&other);
          return 0;
        }),
        "array.good", "release of an array was called on what is released");
}

TEST(Arrays, DeviceArrayMoveMarksSource) {
  FletchingSubject subject = good();
  subject.array = [](void*, ArrowSchema*, ArrowDeviceArray* in, ArrowSchema*, ArrowDeviceArray* out,
                     FletchingMessage*) {
    *out = *in;
    return 0;
  };
  finds(subject, "array.good", "release of an array was called on what is released");
}

TEST(Children, MoveChildThenReleaseParent) {
  FletchingSubject subject = good();
  subject.child = [](void* context, ArrowSchema* schema, ArrowDeviceArray* in, std::int64_t index,
                     ArrowDeviceArray* out, FletchingMessage* message) {
    if (index < 0 || index > 1) return good().child(context, schema, in, index, out, message);
    *out = *in;
    out->array = *in->array.children[index];
    in->array.children[index]->release = nullptr;
    in->array.release = nullptr;
    return 0;
  };
  finds(subject, "array.good-children", "not released: [1-9]");
}

// --- The device ---

TEST(CatalogueArrays, DeviceArrayDeviceTypeSet) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.device_type = 0; }), "int32",
        "device_type");
}

TEST(CatalogueArrays, DeviceArrayDeviceIdSet) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.device_id = 1; }), "int32",
        "device_id");
}

TEST(CatalogueArrays, DeviceArrayDeviceIdConvention) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.device_id = 0; }), "int32",
        "device_id");
}

TEST(ArrayConsumers, DeviceArrayReservedZero) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.reserved[1] = 1; }),
        "array-consumer.plain", "reserved is not zero");
}

TEST(CatalogueArrays, SyncEventNullWhereNone) {
  finds(arrays_with([](ArrowSchema&, ArrowDeviceArray& out) { out.sync_event = &out; }), "int32",
        "sync_event");
}

TEST(Arrays, SyncEventNullAccepted) {
  finds(takes_arrays_with([](ArrowDeviceArray& in) {
          return in.sync_event == nullptr && in.device_type != ARROW_DEVICE_CPU ? EINVAL : 0;
        }),
        "array.device-unknown", "expected success, got errno 22");
}

}  // namespace
}  // namespace fletching::conformance
