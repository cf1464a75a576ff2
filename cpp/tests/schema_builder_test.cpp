// Schemas built by the library: content, ownership, and rejected arguments.
#include "fletching/schema_builder.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"

namespace fletching {
namespace {

using std::string_view_literals::operator""sv;
using testing::code_of;
using testing::fail_each_allocation;
using testing::Injection;

const SchemaNode kBatch{
    .format = "+s",
    .metadata = {{"k", "v"}, {"", "binary\0value"sv}},
    .flags = 0,
    .children = {{.format = "i", .name = "key"},
                 {.format = "+l",
                  .name = "lists",
                  .children = {{.format = "c",
                                .name = "item",
                                .flags = ARROW_FLAG_DICTIONARY_ORDERED,
                                .dictionary = {{.format = "u", .metadata = {{"d", "e"}}}}}}}}};

// A schema with one fault at the bottom.
SchemaNode with_inner(SchemaNode inner) {
  return {.format = "+s",
          .children = {{.format = "i"}, {.format = "+l", .children = {std::move(inner)}}}};
}

std::string message(const SchemaNode& node) { return make_schema(node).error().message(); }

TEST(MakeSchema, CopiesAllFieldsOfNode) {
  const Schema schema = make_schema(kBatch).value();
  EXPECT_EQ(schema.format(), "+s");
  EXPECT_EQ(schema->flags, 0);
  const MetadataView metadata = schema.metadata().value();
  EXPECT_EQ(std::vector<KeyValue>(metadata.begin(), metadata.end()), kBatch.metadata);
  ASSERT_EQ(schema.children().size(), 2U);
  EXPECT_STREQ(schema.children()[0]->name, "key");
  EXPECT_EQ(schema.children()[0]->flags, ARROW_FLAG_NULLABLE);
  EXPECT_STREQ(schema.children()[1]->format, "+l");
  const ArrowSchema* item = schema.children()[1]->children[0];
  EXPECT_STREQ(item->name, "item");
  EXPECT_EQ(item->flags, ARROW_FLAG_DICTIONARY_ORDERED);
  EXPECT_STREQ(item->dictionary->format, "u");
  EXPECT_EQ(MetadataView::read(item->dictionary->metadata).value().find("d"), "e");
}

TEST(MakeSchema, DoesNotReferenceNode) {
  std::string format = "+s";
  std::string key = "key";
  const Schema schema =
      make_schema({.format = format, .name = key, .metadata = {{key, key}}}).value();
  format = "??";
  key = "???";
  EXPECT_EQ(schema.format(), "+s");
  EXPECT_EQ(schema.name(), "key");
  EXPECT_EQ(schema.metadata().value().find("key"), "key");
}

TEST(MakeSchema, AllocatesOnce) {
  const int64_t before = testing::allocations();
  Schema schema = make_schema(kBatch).value();
  EXPECT_EQ(testing::allocations(), before + 1);
  const int64_t live = testing::live_allocations();
  schema.release();
  EXPECT_EQ(testing::live_allocations(), live - 1);
}

TEST(MakeSchema, ChildOutlivesParent) {
  const int64_t live = testing::live_allocations();
  Schema schema = make_schema(kBatch).value();
  Schema lists = schema.take_child(1).value();
  schema.release();
  Schema item = lists.take_child(0).value();
  lists.release();
  EXPECT_EQ(item.name(), "item");
  EXPECT_STREQ(item->dictionary->format, "u");
  EXPECT_EQ(testing::live_allocations(), live + 1);
  item.release();
  EXPECT_EQ(testing::live_allocations(), live);
}

TEST(MakeSchema, RejectsSecondDictionary) {
  EXPECT_EQ(message(with_inner({.format = "c", .dictionary = {{.format = "u"}, {.format = "u"}}})),
            "make_schema: child 1: child 0: dictionary: expected at most one, got 2");
}

TEST(MakeSchema, LimitsNesting) {
  const auto nested = [](int depth) {
    SchemaNode node{.format = "i"};
    for (int i = 1; i < depth; ++i) node = {.format = "+l", .children = {std::move(node)}};
    return node;
  };
  EXPECT_TRUE(make_schema(nested(detail::kMaxDepth)));
  const std::string text = message(nested(detail::kMaxDepth + 1));
  EXPECT_NE(text.find("nested too deep"), std::string::npos) << text;
}

TEST(MakeSchema, AllocationFailureReturnsEnomem) {
  const int64_t failed = fail_each_allocation([](Injection& inject) {
    const Result<Schema> schema = inject([] { return make_schema(kBatch); });
    EXPECT_EQ(code_of(schema), inject.fired() ? ENOMEM : 0);
  });
  EXPECT_EQ(failed, 1);
}

TEST(MakeSchema, AllocationFailureInErrorTextReturnsEnomem) {
  const SchemaNode node = with_inner({.format = ""});
  const int64_t failed = fail_each_allocation([&](Injection& inject) {
    const Result<Schema> schema = inject([&] { return make_schema(node); });
    EXPECT_EQ(code_of(schema), inject.fired() ? ENOMEM : EINVAL);
  });
  EXPECT_GT(failed, 0);
}

TEST(Rules, SchemaFormatSet) {
  EXPECT_EQ(message({}), "make_schema: format: empty: expected a format string");
  EXPECT_EQ(message(with_inner({.format = ""})),
            "make_schema: child 1: child 0: format: empty: expected a format string");
  EXPECT_EQ(message({.format = "c", .dictionary = {{.format = ""}}}),
            "make_schema: dictionary: format: empty: expected a format string");
}

TEST(Rules, SchemaFormatUtf8) {
  EXPECT_EQ(message({.format = "tsu:\xff"}), "make_schema: format: not UTF-8");
  EXPECT_EQ(message({.format = "i\0"sv}),
            "make_schema: format: NUL character: expected text without it");
  const Schema schema = make_schema({.format = "tsu:\xc3\xa9"}).value();
  EXPECT_STREQ(schema->format, "tsu:\xc3\xa9");
}

TEST(Rules, FormatDictionaryIndexType) {
  for (const char* format : {"c", "C", "s", "S", "i", "I", "l", "L"}) {
    EXPECT_TRUE(make_schema({.format = format, .dictionary = {{.format = "u"}}})) << format;
  }
  for (const char* format : {"u", "g", "+s", "ii"}) {
    EXPECT_EQ(message(with_inner({.format = format, .dictionary = {{.format = "u"}}})),
              "make_schema: child 1: child 0: format: wrong for dictionary indices: expected an "
              "integer, got \"" +
                  std::string(format) + "\"");
  }
}

TEST(Rules, FormatMapChild) {
  const SchemaNode key{.format = "u", .name = "key"};
  const SchemaNode entries{.format = "+s", .name = "entries", .children = {key, key}};
  EXPECT_TRUE(make_schema({.format = "+m", .children = {entries}}));
  const std::vector<SchemaNode> wrong[] = {
      {}, {entries, entries}, {key}, {{.format = "+s", .children = {key}}}};
  for (const std::vector<SchemaNode>& children : wrong) {
    EXPECT_EQ(message({.format = "+m", .children = children}),
              "make_schema: children of a map: expected one struct of a key and a value");
  }
}

TEST(Rules, FormatRunEndChildren) {
  const SchemaNode values{.format = "g", .name = "values"};
  for (const char* ends : {"s", "i", "l"}) {
    EXPECT_TRUE(make_schema({.format = "+r", .children = {{.format = ends}, values}})) << ends;
  }
  const std::vector<SchemaNode> wrong[] = {
      {}, {values}, {{.format = "i"}}, {values, {.format = "i"}}, {{.format = "C"}, values}};
  for (const std::vector<SchemaNode>& children : wrong) {
    EXPECT_EQ(
        message({.format = "+r", .children = children}),
        "make_schema: children of run ends: expected integers of 16, 32 or 64 bits, and values");
  }
}

TEST(Rules, SchemaNameUtf8) {
  EXPECT_EQ(message(with_inner({.format = "i", .name = "\xed\xa0\x80"})),
            "make_schema: child 1: child 0: name: not UTF-8");
  EXPECT_EQ(message({.format = "i", .name = "a\0b"sv}),
            "make_schema: name: NUL character: expected text without it");
}

TEST(Rules, SchemaMetadataNullWhenAbsent) {
  const Schema schema = make_schema({.format = "i"}).value();
  EXPECT_EQ(schema->metadata, nullptr);
  EXPECT_STREQ(schema->name, "");
}

TEST(Rules, SchemaDictionaryNullOtherwise) {
  EXPECT_EQ(make_schema({.format = "i"}).value()->dictionary, nullptr);
}

// The limit itself is allowed.
TEST(MakeSchema, LimitsNumberOfStructs) {
  const SchemaNode pair{.format = "+s", .children = {{.format = "i"}}};
  detail::SchemaSize size{.structs = detail::kMaxStructs - 2};
  EXPECT_TRUE(detail::measure(pair, &size));
  size = {.structs = detail::kMaxStructs - 1};
  const Status wide = detail::measure(pair, &size);
  ASSERT_FALSE(wide);
  EXPECT_EQ(wide.error().message(), "child 0: one of too many: expected at most 4194304 structs");
}

// For example, a few long strings shared by millions of nodes.
TEST(MakeSchema, DetectsTextSizeOverflow) {
  detail::SchemaSize size{.text = INT64_MAX - 2};
  EXPECT_TRUE(detail::measure({.format = "i"}, &size));
  EXPECT_FALSE(size.text);
}

}  // namespace
}  // namespace fletching
