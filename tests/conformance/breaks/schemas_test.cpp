// SPDX-License-Identifier: Apache-2.0
//
// The rules of ArrowSchema.
#include <cstdint>
#include <cstring>

#include "structs.hpp"

namespace fletching::conformance {
namespace {

// The shape of a schema is checked together with its array.

TEST(Arrays, SchemaFormatSet) {
  finds(arrays_with([](ArrowSchema& schema, ArrowDeviceArray&) { schema.format = nullptr; }),
        "int32.whole");
}

TEST(Arrays, SchemaNChildrenSet) {
  finds(arrays_with([](ArrowSchema& schema, ArrowDeviceArray&) { schema.n_children = -1; }),
        "struct.whole");
}

TEST(Arrays, SchemaChildrenNullOnlyWhenNone) {
  finds(arrays_with([](ArrowSchema& schema, ArrowDeviceArray&) { schema.children = nullptr; }),
        "struct.whole");
}

TEST(Arrays, SchemaChildrenCount) {
  finds(arrays_with([](ArrowSchema& schema, ArrowDeviceArray&) {
          static ArrowSchema* children[2];
          children[0] = schema.children[0];
          schema.children = children;
        }),
        "struct.whole");
}

TEST(Arrays, FormatMapChild) {
  finds(arrays_with([](ArrowSchema& schema, ArrowDeviceArray&) {
          static ArrowSchema entries;
          static ArrowSchema* children[1]{&entries};
          entries = *schema.children[0];
          entries.n_children = 1;
          schema.children = children;
        }),
        "map.whole");
}

TEST(Arrays, FormatRunEndChildren) {
  finds(arrays_with([](ArrowSchema& schema, ArrowDeviceArray&) {
          static ArrowSchema run_ends;
          static ArrowSchema* children[2]{&run_ends};
          run_ends = *schema.children[0];
          run_ends.format = "f";
          children[1] = schema.children[1];
          schema.children = children;
        }),
        "run-end-encoded.whole");
}

TEST(Arrays, FormatDictionaryIndexType) {
  finds(arrays_with([](ArrowSchema& schema, ArrowDeviceArray&) { schema.format = "f"; }),
        "dictionary-int32.whole");
}

// The strings of a schema are compared with the input's.

TEST(Schemas, SchemaFormatUtf8) {
  finds(schemas_with([](ArrowSchema& schema) { schema.format = "\xFF"; }), "spelling.int32",
        "schema.format: expected");
}

TEST(Schemas, SchemaNameUtf8) {
  finds(schemas_with([](ArrowSchema& schema) { schema.name = "\xFF"; }), "spelling.int32",
        "schema.name: expected");
}

TEST(Schemas, SchemaMetadataNullWhenAbsent) {
  finds(schemas_with([](ArrowSchema& schema) { schema.metadata = ""; }), "spelling.int32",
        "schema.metadata: expected false, got true");
}

TEST(Schemas, SchemaFlagsZeroWhenAbsent) {
  finds(schemas_with([](ArrowSchema& schema) { schema.flags = -1; }), "spelling.int32",
        "schema.flags: expected 2, got -1");
}

TEST(Schemas, SchemaFlagsPropagated) {
  finds(schemas_with([](ArrowSchema& schema) { schema.flags = 0; }), "spelling.int32",
        "schema.flags: expected 2, got 0");
}

TEST(Schemas, SchemaDictionaryNullOtherwise) {
  finds(schemas_with([](ArrowSchema& schema) {
          static ArrowSchema dictionary;
          schema.dictionary = &dictionary;
        }),
        "spelling.int32", "schema.dictionary: expected false, got true");
}

TEST(Schemas, SchemaReleaseSet) {
  finds(schemas_with([](ArrowSchema& schema) { schema.release = nullptr; }), "spelling.int32",
        "schema.release: expected true, got false");
}

/// {"k": "\xFF\xFE"}, from the case metadata.not-utf8.
struct Metadata {
  std::int32_t count;
  std::int32_t key_length;
  char rest[16];
};

TEST(Schemas, MetadataEncoding) {
  finds(schemas_with([](ArrowSchema& schema) {
          static Metadata metadata;
          std::memcpy(&metadata, schema.metadata, 15);
          metadata.count = -1;
          schema.metadata = reinterpret_cast<const char*>(&metadata);
        }),
        "metadata.not-utf8", "metadata's bytes");
}

TEST(Schemas, MetadataNativeEndian) {
  finds(schemas_with([](ArrowSchema& schema) {
          static Metadata metadata;
          std::memcpy(&metadata, schema.metadata, 15);
          metadata.count = 1 << 24;
          metadata.key_length = 1 << 24;
          schema.metadata = reinterpret_cast<const char*>(&metadata);
        }),
        "metadata.not-utf8", "metadata's bytes");
}

TEST(Schemas, MetadataNotNulTerminated) {
  finds(schemas_with([](ArrowSchema& schema) {
          static char metadata[16];
          std::strncpy(metadata, schema.metadata, sizeof metadata - 1);
          schema.metadata = metadata;
        }),
        "metadata.not-utf8", "metadata's bytes");
}

// --- Consumer rules ---

TEST(Schemas, SchemaNameNullAccepted) {
  finds(takes_schemas_with([](ArrowSchema& in) { return in.name == nullptr ? EINVAL : 0; }),
        "schema.name-null", "expected success, got errno 22");
}

TEST(Schemas, SchemaPrivateDataUntouched) {
  finds(takes_schemas_with([](ArrowSchema& in) {
          in.private_data = nullptr;
          return 0;
        }),
        "spelling.int32", "called twice, or on a struct that was changed");
}

/// Replaces a string to imitate freed memory that is reused.
TEST(Schemas, ReleaseConsumerFreesNothing) {
  finds(takes_schemas_with([](ArrowSchema& in) {
          static const std::string name(in.name);
          in.name = name.c_str();
          return 0;
        }),
        "spelling.int32", "a struct was changed by the consumer");
  finds(schemas_with([](ArrowSchema& out) {
          out.release = [](ArrowSchema* self) {
            *const_cast<char*>(self->format) = '#';
            release_inner(self);
            self->release = nullptr;
          };
        }),
        "spelling.int32", "what a struct points to was changed by the consumer");
}

TEST(Schemas, ReleaseOnce) {
  FletchingSubject subject = good();
  subject.schema = [](void*, ArrowSchema* in, ArrowSchema* out, FletchingMessage*) {
    *out = *in;
    in->release(in);
    return 0;
  };
  finds(subject, "schema.good", "release of a schema was called on what is released");
}

TEST(Schemas, MoveMarksSource) {
  FletchingSubject subject = good();
  subject.schema = [](void*, ArrowSchema* in, ArrowSchema* out, FletchingMessage*) {
    *out = *in;
    return 0;
  };
  finds(subject, "schema.good", "release of a schema was called on what is released");
}

// The peer overwrites a struct after its release.
TEST(Schemas, ReleaseNoAccessAfter) {
  FletchingSubject subject = good();
  subject.schema = [](void*, ArrowSchema* in, ArrowSchema* out, FletchingMessage*) {
    in->release(in);
    *out = {};
    out->format = "i";
    out->flags = in->flags;
    out->release = [](ArrowSchema* self) { self->release = nullptr; };
    return 0;
  };
  finds(subject, "spelling.int32", "schema.flags: expected 2");
}

// A subject that promises to read formats and does not.
FletchingSubject reads_no_formats() {
  FletchingSubject subject = good();
  subject.schema = FletchingConformanceSubject(1)->schema;
  return subject;
}

TEST(Schemas, FormatKnown) { finds(reads_no_formats(), "misspelling.int32-1"); }
TEST(Schemas, FormatTimestampColon) { finds(reads_no_formats(), "misspelling.timestamp-s-colon"); }
TEST(Schemas, FormatTimezoneUnquoted) {
  finds(reads_no_formats(), "misspelling.timestamp-s-zone-2");
}

}  // namespace
}  // namespace fletching::conformance
