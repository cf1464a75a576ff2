// SPDX-License-Identifier: Apache-2.0
//
// Random types and arrays: moves, views, children and streams change neither the structs nor the
// lifetime of the data.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fletching/array_capacity.hpp"
#include "fletching/async_adapters.hpp"
#include "fletching/check_array.hpp"
#include "fletching/schema_builder.hpp"
#include "fletching/shared.hpp"
#include "fletching/stream_adapters.hpp"

namespace fletching {
namespace {

using Memory = std::array<std::int64_t, 512>;

/// A random type with an array, and random operations on both, from one seed.
class RandomTree {
 public:
  explicit RandomTree(unsigned seed) : random_(seed) {}

  void run() {
    build();
    for (int step = 0; step < 8 && !::testing::Test::HasFailure(); ++step) change();
    schema_.release();
    array_.release();
    while (!rest_.empty()) rest_.erase(rest_.begin() + static_cast<int>(below(rest_.size())));
    EXPECT_EQ(memory_.use_count(), 1) << "the data is released once, with its last struct";
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }

  SchemaNode type(int depth) {
    constexpr std::array kFormats{"i",  "u",    "n",  "b",  "w:3", "vz",
                                  "+s", "+w:2", "+l", "+m", "+r",  "+us:0,5"};
    SchemaNode node{.format = kFormats.at(below(depth == 0 ? 6 : kFormats.size()))};
    node.name = below(2) == 0 ? "" : "column";
    node.flags = static_cast<std::int64_t>(below(8));
    if (below(3) == 0) node.metadata = {{"key", "value"}, {"", ""}};
    const auto add = [&] { node.children.push_back(type(depth - 1)); };
    if (node.format == "+s") {
      for (std::size_t n = below(4); n > 0; --n) add();
    } else if (node.format == "+m") {
      node.children = {{.format = "+s", .name = "entries", .children = {{.format = "i"}}}};
      node.children[0].children.push_back(type(depth - 1));
    } else if (node.format == "+r") {
      node.children = {{.format = "i"}, type(depth - 1)};
    } else if (node.format[0] == '+') {
      const int count = parse_format(node.format)->n_children;
      for (int i = 0; i < count; ++i) add();
    } else if (node.format == "i" && below(3) == 0) {
      node.dictionary.push_back(type(depth == 0 ? 0 : depth - 1));
    }
    return node;
  }

  template <class Builder>
  void fill(Builder& builder, const SchemaNode& node, ArrowArray& array, std::int64_t least) {
    const Format format = *parse_format(node.format);
    const ArrayValues values{.length = least + static_cast<std::int64_t>(below(3)),
                             .null_count = format.has_no_nulls() ? 0 : -static_cast<int>(below(2)),
                             .offset = static_cast<std::int64_t>(below(3))};
    const std::int64_t end = values.offset + values.length;
    std::vector<const void*> buffers(
        static_cast<std::size_t>(format.n_buffers + (format.is_view() ? 1 : 0)));
    for (const void*& buffer : buffers) buffer = &memory_->at(next_++ % memory_->size());
    builder.set(array, values, buffers);
    const auto children = static_cast<std::int64_t>(node.children.size());
    const AddedChildren added = builder.add_children(array, children);
    const bool follows = node.format == "+s" || node.format[1] == 'u';
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const bool is_sized = format.id == TypeId::kFixedSizeList;
      std::int64_t child_least = is_sized ? end * 2 : follows ? end : 1;
      if (node.format == "+r" && i == 1) child_least = added[0].length;
      fill(builder, node.children[i], added[i], child_least);
    }
    if (!node.dictionary.empty()) {
      fill(builder, node.dictionary[0], builder.add_dictionary(array), 0);
    }
  }

  void build() {
    const SchemaNode node = type(4);
    schema_ = make_schema(node).value();
    auto builder = build_array_for(*schema_, std::shared_ptr<Memory>(memory_)).value();
    fill(builder, node, builder.root(), 0);
    array_ = builder.finish_cpu().value();
    expect_same(show_schema(*schema_), show_array(array_->array), "build");
  }

  static std::string show_schema(const ArrowSchema& node) {
    const std::string_view metadata = MetadataView::read(node.metadata)->block();
    std::string text = std::string(node.format) + "|" + node.name + "|" +
                       std::to_string(node.flags) + "|" + std::string(metadata) + "(";
    for (int i = 0; i < node.n_children; ++i) text += show_schema(*node.children[i]);
    return text + ")" + (node.dictionary == nullptr ? "" : show_schema(*node.dictionary));
  }

  static std::string show_array(const ArrowArray& node) {
    std::string text;
    for (const std::int64_t n : {node.length, node.null_count, node.offset, node.n_buffers}) {
      text.append(std::to_string(n)).append(1, ' ');
    }
    for (int i = 0; i < node.n_buffers; ++i) {
      text += std::to_string(reinterpret_cast<std::uintptr_t>(node.buffers[i])) + " ";
    }
    text += '(';
    for (int i = 0; i < node.n_children; ++i) text += show_array(*node.children[i]);
    return text + ")" + (node.dictionary == nullptr ? "" : show_array(*node.dictionary));
  }

  void expect_same(const std::string& schema, const std::string& array, const char* what) {
    EXPECT_EQ(show_schema(*schema_), schema) << what;
    EXPECT_EQ(show_array(array_->array), array) << what;
    EXPECT_EQ(check_array(*schema_, *array_).value().status().ok(), true)
        << what << ": " << check_array(*schema_, *array_)->status().error().message();
    EXPECT_EQ(array_.device_type(), ARROW_DEVICE_CPU) << what;
    EXPECT_GT(memory_.use_count(), 1) << what;
  }

  /// Keeps the object until the end, or releases it immediately.
  template <class Owned>
  void keep(Owned owned) {
    if (below(2) == 0) rest_.push_back(std::make_shared<Owned>(std::move(owned)));
  }

  template <class Raw>
  Owner<Raw> view_of(Owner<Raw> owner) {
    Shared<Raw> shared = share(std::move(owner)).value();
    keep(shared.view().value());
    return shared.view().value();
  }

  /// Descends to a child of schema and array: moves it out, or takes a view of the column.
  void descend(bool take) {
    const auto children = array_->array.n_children;
    const bool dictionary = children == 0;
    if (dictionary && array_->array.dictionary == nullptr) return;
    const auto index =
        dictionary ? 0 : static_cast<std::int64_t>(below(static_cast<std::size_t>(children)));
    const ArrowSchema& type = dictionary ? *schema_->dictionary : *schema_->children[index];
    const ArrowArray& data =
        dictionary ? *array_->array.dictionary : *array_->array.children[index];
    const std::string schema = show_schema(type);
    const std::string array = show_array(data);
    const auto part = [&](auto& owner) {
      if (dictionary) return owner.take_dictionary().value();
      if (take) return owner.take_child(index).value();
      auto shared = share(std::move(owner)).value();
      keep(shared.view().value());
      return shared.column(index).value();
    };
    auto below_schema = part(schema_);
    auto below_array = part(array_);
    keep(std::exchange(schema_, std::move(below_schema)));
    keep(std::exchange(array_, std::move(below_array)));
    expect_same(schema, array, take ? "take_child" : "column");
  }

  template <class Reader>
  auto read(Reader reader) {
    schema_ = reader.schema().value();
    auto batch = reader.next().value().value();
    EXPECT_FALSE(reader.next().has_value());
    return batch;
  }

  DeviceArrayStream stream() {
    std::vector<DeviceArray> batches;
    batches.push_back(std::move(array_));
    return make_device_stream(std::move(schema_), ARROW_DEVICE_CPU, std::move(batches)).value();
  }

  void change() {
    const std::string schema = show_schema(*schema_);
    const std::string array = show_array(array_->array);
    const std::size_t which = below(8);
    const Options strict{.strict = true};
    if (which < 2) return descend(which == 0);
    if (which == 2) {
      schema_ = view_of(std::move(schema_));
      array_ = view_of(std::move(array_));
    } else if (which == 3) {
      ArrowDeviceArray raw;
      array_.move_to(&raw);
      array_ = DeviceArray(&raw);
    } else if (which == 4) {
      ASSERT_TRUE(attach(array_, std::shared_ptr<Memory>(memory_)).ok());
    } else if (which == 5) {
      array_ = read(DeviceArrayStreamReader(stream(), strict));
    } else if (which == 6) {
      array_ = to_device_array(read(ArrayStreamReader(to_array_stream(stream()).value(), strict)));
    } else {
      AsyncReader reader = AsyncReader::create(2).value();
      ASSERT_TRUE(send_async(stream(), reader.handler(), *worker_).ok());
      array_ = read(DeviceArrayStreamReader(std::move(reader).open().value(), strict));
    }
    expect_same(schema, array, std::to_string(which).c_str());
  }

  std::mt19937 random_;
  std::unique_ptr<WorkerThread> worker_ = WorkerThread::start().value();
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
  std::size_t next_ = 0;
  Schema schema_;
  DeviceArray array_;
  std::vector<std::shared_ptr<void>> rest_;
};

TEST(RandomTree, KeepsDataThroughMovesViewsAndStreams) {
  for (unsigned seed = 0; seed < 500 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomTree(seed).run();
  }
}

}  // namespace
}  // namespace fletching
