// SPDX-License-Identifier: Apache-2.0
#include "fletching/shared_schema.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"

namespace fletching::testing {
namespace {

/// A struct of two children, the second with a dictionary; all in static-like storage of the test.
struct Original {
  ArrowSchema first{}, second{}, dictionary{}, root{};
  std::array<ArrowSchema*, 2> children{&first, &second};
  int released = 0;

  Original() {
    const auto set = [](ArrowSchema& schema, const char* format, const char* name) {
      schema.format = format;
      schema.name = name;
      schema.release = [](ArrowSchema* self) { self->release = nullptr; };
    };
    set(first, "i", "first");
    set(second, "s", "second");
    set(dictionary, "u", nullptr);
    set(root, "+s", "root");
    second.dictionary = &dictionary;
    root.n_children = 2;
    root.children = children.data();
    root.flags = ARROW_FLAG_NULLABLE;
    root.private_data = this;
    root.release = [](ArrowSchema* self) {
      ++static_cast<Original*>(self->private_data)->released;
      self->release = nullptr;
    };
  }

  std::shared_ptr<const Schema> share() { return std::make_shared<const Schema>(&root); }
};

TEST(SharedSchema, has_everything_of_the_original) {
  Original original;
  auto shared = original.share();
  const Result<Schema> schema = share_schema(shared);
  ASSERT_TRUE(schema.ok());
  shared.reset();
  EXPECT_EQ(original.released, 0);
  const ArrowSchema& root = *schema->get();
  EXPECT_STREQ(root.format, "+s");
  EXPECT_STREQ(root.name, "root");
  EXPECT_EQ(root.flags, ARROW_FLAG_NULLABLE);
  ASSERT_EQ(root.n_children, 2);
  EXPECT_STREQ(root.children[0]->name, "first");
  EXPECT_EQ(root.children[0]->children, nullptr);
  EXPECT_STREQ(root.children[1]->dictionary->format, "u");
  EXPECT_EQ(root.children[1]->dictionary->name, nullptr);
}

TEST(SharedSchema, children_can_be_moved_out) {
  Original original;
  Schema child;
  {
    Result<Schema> schema = share_schema(original.share());
    ASSERT_TRUE(schema.ok());
    child = Schema((*schema)->children[1]);
    EXPECT_EQ((*schema)->children[1]->release, nullptr);
  }
  EXPECT_EQ(original.released, 0);  // the child still reads its texts
  EXPECT_STREQ(child->name, "second");
  EXPECT_STREQ(child->dictionary->format, "u");
  child.release();
  EXPECT_EQ(original.released, 1);
}

TEST(SharedSchema, refuses_what_is_malformed) {
  const auto code_with = [](auto&& change) {
    Original original;
    change(original);
    const Result<Schema> schema = share_schema(original.share());
    EXPECT_TRUE(schema.ok() || !schema.error().message().empty());
    return code_of(schema);
  };
  EXPECT_EQ(code_with([](Original&) {}), 0);
  EXPECT_EQ(code_with([](Original& o) { o.root.release = nullptr; }), EINVAL);
  EXPECT_EQ(code_with([](Original& o) { o.root.format = nullptr; }), EINVAL);
  EXPECT_EQ(code_with([](Original& o) { o.first.release = nullptr; }), EINVAL);
  EXPECT_EQ(code_with([](Original& o) { o.root.n_children = -1; }), EINVAL);
  EXPECT_EQ(code_with([](Original& o) { o.root.n_children = INT64_MAX; }), EINVAL);
  EXPECT_EQ(code_with([](Original& o) { o.root.children = nullptr; }), EINVAL);
  EXPECT_EQ(code_with([](Original& o) { o.children[1] = nullptr; }), EINVAL);
  EXPECT_EQ(code_with([](Original& o) { o.dictionary.format = nullptr; }), EINVAL);
  EXPECT_EQ(code_with([](Original& o) { o.dictionary.dictionary = &o.dictionary; }), EINVAL);
  EXPECT_EQ(code_of(share_schema(nullptr)), EINVAL);
}

TEST(SharedSchema, survives_every_allocation_failing) {
  Original original;
  const auto shared = original.share();
  const auto failed = fail_each_allocation([&](Injection& inject) {
    const int code = inject([&] { return code_of(share_schema(shared)); });
    EXPECT_EQ(code, inject.fired() ? ENOMEM : 0);
  });
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace fletching::testing
