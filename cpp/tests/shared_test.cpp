// Shared structs: views of columns and of whole structs, which keep the data and the event alive.
#include "fletching/shared.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"
#include "fletching/schema_builder.hpp"
#include "foreign.hpp"

namespace fletching {
namespace {

using testing::code_of;
using testing::fail_each_allocation;
using testing::foreign_array;
using testing::foreign_device_array;
using testing::Injection;
using testing::Log;

SharedDeviceArray shared_batch(Log* log, size_t children) {
  ArrowDeviceArray raw = foreign_device_array(log, "a", children, true);
  return share(DeviceArray(&raw)).value();
}

TEST(Shared, ColumnSharesBuffersAndEvent) {
  Log log;
  const SharedDeviceArray shared = shared_batch(&log, 2);
  const DeviceArray column = shared.column(1).value();
  EXPECT_EQ(column->array.buffers[1], (*shared).children()[1]->buffers[1]);
  EXPECT_EQ(column.length(), 1);
  EXPECT_EQ(column.device_type(), ARROW_DEVICE_CUDA);
  EXPECT_EQ(column.device_id(), 3);
  EXPECT_EQ(column->sync_event, shared->get()->sync_event);
}

TEST(Shared, LastViewReleaseFreesData) {
  Log log;
  auto shared = std::make_unique<SharedDeviceArray>(shared_batch(&log, 2));
  EXPECT_TRUE(shared->is_unique());
  DeviceArray first = shared->column(0).value();
  EXPECT_FALSE(shared->is_unique());
  DeviceArray again = shared->column(0).value();
  shared.reset();
  first.release();
  EXPECT_EQ(log, Log{});
  again.release();
  EXPECT_EQ(log, (Log{"a0", "a1", "ad", "a", "event"}));
}

TEST(Shared, MovingChildrenOutKeepsOtherViews) {
  Log log;
  auto shared = std::make_unique<SharedDeviceArray>(shared_batch(&log, 2));
  DeviceArray one = shared->view().value();
  DeviceArray other = shared->view().value();
  shared.reset();
  DeviceArray child = one.take_child(1).value();
  DeviceArray dictionary = one.take_dictionary().value();
  one.release();
  EXPECT_NE(other->array.children[1]->release, nullptr);
  EXPECT_TRUE(other.take_child(1).ok());
  other.release();
  child.release();
  EXPECT_EQ(log, Log{});
  EXPECT_EQ(*static_cast<const int64_t*>(dictionary->array.buffers[1]), 0);
  dictionary.release();
  EXPECT_EQ(log, (Log{"a0", "a1", "ad", "a", "event"}));
}

TEST(Shared, SharesViewAgain) {
  Log log;
  auto shared = std::make_unique<SharedDeviceArray>(shared_batch(&log, 1));
  auto nested = std::make_unique<SharedDeviceArray>(share(shared->view().value()).value());
  shared.reset();
  DeviceArray column = nested->column(0).value();
  nested.reset();
  EXPECT_EQ(log, Log{});
  column.release();
  EXPECT_EQ(log, (Log{"a0", "ad", "a", "event"}));
}

TEST(Shared, RejectsMalformedArraysWithMessage) {
  Log log;
  ArrowArray raw = foreign_array(&log, "a", 2);
  ArrowArray* first = raw.children[0];
  const SharedArray shared = share(Array(&raw)).value();
  const auto message = [&](int64_t index) { return shared.column(index).error().message(); };
  EXPECT_EQ(message(2), "column: child 2: no such child: expected an index below 2");
  EXPECT_EQ(message(-1), "column: child -1: no such child: expected an index below 2");

  const auto with = [&](auto change) {
    const ArrowArray before = *first;
    change();
    std::string text = message(0);
    EXPECT_EQ(code_of(shared.view()), EINVAL);
    *first = before;
    return text;
  };
  constexpr const char* kBegin = "view: the struct or a descendant ";
  constexpr const char* kRange = "has n_children out of range: expected 0 to 4194304, got ";
  EXPECT_EQ(with([&] { first->release = nullptr; }),
            std::string(kBegin) + "is released or moved out");
  EXPECT_EQ(with([&] { first->n_children = -1; }), std::string(kBegin) + kRange + "-1");
  EXPECT_EQ(with([&] { first->n_children = INT64_MAX; }),
            std::string(kBegin) + kRange + "9223372036854775807");
  EXPECT_EQ(with([&] { first->n_children = detail::kMaxStructs + 1; }),
            std::string(kBegin) + kRange + "4194305");
  EXPECT_EQ(with([&] { first->n_children = 1; }),
            std::string(kBegin) + "has children NULL: expected a list of 1");
  ArrowArray* null = nullptr;
  EXPECT_EQ(with([&] {
              first->n_children = 1;
              first->children = &null;
            }),
            std::string(kBegin) + "is NULL");
  EXPECT_EQ(with([&] {
              first->n_children = 1;
              first->children = &first;  // contains itself
            }),
            std::string(kBegin) + "is nested too deep: expected at most 256 levels");
  EXPECT_EQ(with([&] { first->dictionary = first; }),
            std::string(kBegin) + "is nested too deep: expected at most 256 levels");
}

// The level above lists each level twice: 23 structs in 2^23 - 1 places.
TEST(Shared, RejectsTooManyStructs) {
  std::array<ArrowSchema, 23> levels{};
  std::array<std::array<ArrowSchema*, 2>, levels.size() - 1> lists{};
  for (size_t i = 0; i < levels.size(); ++i) {
    levels[i].format = "+s";
    levels[i].release = [](ArrowSchema* self) { self->release = nullptr; };
    if (i == lists.size()) break;
    lists[i].fill(&levels[i + 1]);
    levels[i].n_children = 2;
    levels[i].children = lists[i].data();
  }
  const SharedSchema shared = share(Schema(levels.data())).value();
  EXPECT_EQ(shared.view().error().message(),
            "view: the struct or a descendant is one of too many: expected at most 4194304");
}

TEST(Shared, LimitsNestingLikeMakeSchema) {
  SchemaNode node{.format = "i"};
  for (int i = 1; i < detail::kMaxDepth; ++i) node = {.format = "+l", .children = {node}};
  Schema below = make_schema(node).value();
  ArrowSchema* list = below.get();
  ArrowSchema raw{};
  raw.format = "+l";
  raw.n_children = 1;
  raw.children = &list;
  raw.release = [](ArrowSchema* self) { self->release = nullptr; };
  const SharedSchema deeper = share(Schema(&raw)).value();
  EXPECT_EQ(code_of(deeper.view()), EINVAL);
  EXPECT_TRUE(deeper.column(0).ok());
}

TEST(Shared, RejectsSchemaWithoutFormat) {
  Schema original =
      make_schema({.format = "+s", .children = {{.format = "c", .dictionary = {{.format = "u"}}}}})
          .value();
  ArrowSchema* const child = original->children[0];
  const SharedSchema shared = share(std::move(original)).value();
  for (const char** format : {&child->format, &child->dictionary->format}) {
    const char* const before = std::exchange(*format, nullptr);
    EXPECT_EQ(shared.view().error().message(), "view: the struct or a descendant has format NULL");
    EXPECT_EQ(code_of(shared.column(0)), EINVAL);
    *format = before;
  }
  EXPECT_TRUE(shared.view().ok());
}

TEST(Shared, SchemaViewHasAllFields) {
  auto shared = std::make_unique<SharedSchema>(
      share(make_schema({.format = "+s",
                         .name = "root",
                         .children = {{.format = "i", .name = "first"},
                                      {.format = "s", .dictionary = {{.format = "u"}}}}})
                .value())
          .value());
  const char* const format = (*shared)->get()->format;
  const Schema view = shared->view().value();
  shared.reset();
  EXPECT_EQ(view->format, format) << "no text is copied";
  EXPECT_EQ(view.name(), "root");
  ASSERT_EQ(view->n_children, 2);
  EXPECT_STREQ(view->children[0]->name, "first");
  EXPECT_EQ(view->children[0]->children, nullptr);
  EXPECT_STREQ(view->children[1]->name, "");
  EXPECT_STREQ(view->children[1]->dictionary->format, "u");
}

TEST(Shared, RejectsReleasedOwner) {
  EXPECT_EQ(code_of(share(Array())), EINVAL);
  EXPECT_EQ(share(Schema()).error().message(), "share: struct is released: expected a live struct");
}

TEST(Shared, ViewAllocatesOnce) {
  Log log;
  const SharedDeviceArray shared = shared_batch(&log, 100);
  const int64_t before = testing::allocations();
  const DeviceArray view = shared.view().value();
  EXPECT_EQ(testing::allocations(), before + 1);
}

TEST(Shared, AllocationFailureReturnsEnomem) {
  const int64_t failed = fail_each_allocation([](Injection& inject) {
    Log log;
    ArrowDeviceArray raw = foreign_device_array(&log, "a", 1);
    DeviceArray array(&raw);
    const Result<DeviceArray> column = inject([&]() -> Result<DeviceArray> {
      Result<SharedDeviceArray> shared = share(std::move(array));
      if (!shared) return std::move(shared).error();
      return shared->column(0);
    });
    EXPECT_EQ(code_of(column), inject.fired() ? ENOMEM : 0);
    // Released if it was already shared, otherwise still owned by the caller.
    EXPECT_EQ(log.empty(), column.ok() || !array.is_released());  // NOLINT(bugprone-use-after-move)
  });
  EXPECT_EQ(failed, 2);
}

/// Calls `body` with a number from 0 to 3 on each of four threads.
template <class Body>
void on_threads(const Body& body) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int64_t i = 0; i < 4; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(Shared, CreatesAndReleasesViewsOnManyThreads) {
  Log log;
  {
    const SharedDeviceArray shared = shared_batch(&log, 4);
    on_threads([shared](int64_t i) {
      for (int round = 0; round < 100; ++round) {
        DeviceArray view = shared.view().value();
        const DeviceArray child = view.take_child(i).value();
        const DeviceArray column = shared.column(3 - i).value();
        view.release();
        EXPECT_EQ(child.length() + column.length(), 2);
      }
    });
    EXPECT_EQ(log, Log{});
  }
  EXPECT_EQ(log.back(), "event");
}

// A non-atomic count would fail within this many rounds.
TEST(Shared, CopiesOnManyThreads) {
  Log log;
  const SharedDeviceArray shared = shared_batch(&log, 1);
  on_threads([&shared](int64_t /*i*/) {
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): the copy is tested
    for (int round = 0; round < 600000; ++round) const SharedDeviceArray other = shared;
  });
  EXPECT_TRUE(shared.is_unique());
}

TEST(Rules, SchemaFlagsPropagated) {
  constexpr int64_t kUnknown = int64_t{1} << 40;
  const SharedSchema shared =
      share(
          make_schema(
              {.format = "+s",
               .flags = kUnknown,
               .children = {{.format = "i", .name = "x", .flags = ARROW_FLAG_NULLABLE | kUnknown}}})
              .value())
          .value();
  const Schema all = shared.view().value();
  EXPECT_EQ(all->flags, kUnknown);
  EXPECT_EQ(all->children[0]->flags, ARROW_FLAG_NULLABLE | kUnknown);
  const Schema column = shared.column(0).value();
  EXPECT_EQ(column.name(), "x");
  EXPECT_EQ(column->flags, ARROW_FLAG_NULLABLE | kUnknown);
}

}  // namespace
}  // namespace fletching
