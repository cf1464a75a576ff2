// The producer: record batches over the application's objects, passed to import.cpp one by one and
// as streams.
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fletching/array_capacity.hpp"
#include "fletching/owner.hpp"
#include "fletching/schema_builder.hpp"
#include "fletching/stream_producer.hpp"
#include "user_project.hpp"

using namespace fletching;

namespace {

int tables_alive = 0;

struct LiveCounter {
  LiveCounter() noexcept { ++tables_alive; }
  LiveCounter(LiveCounter&& /*other*/) noexcept : LiveCounter() {}
  ~LiveCounter() { --tables_alive; }
};

// The owner of every buffer of a batch. Its strings fit in the small-string buffer of std::string.
struct Table {
  std::vector<std::int32_t> ids;
  std::uint8_t ids_valid;  // bitmap of up to eight values
  std::vector<double> prices;
  std::vector<std::int32_t> name_offsets;
  std::string names;
  LiveCounter alive;
};

Schema table_schema(const char* price_format) {
  const std::vector<SchemaNode> columns{{"i", "id"}, {price_format, "price"}, {"u", "name"}};
  return need(make_schema({.format = "+s", .children = columns}), "make_schema");
}

Table table_of(std::int32_t first) {
  return {{first, 0, first + 2}, 0b101,  {first + 0.5, first + 1.5, first + 2.5},
          {0, 2, 2, 4},          "abcd", {}};
}

Result<DeviceArray> batch_of(const Schema& schema, Table table) {
  auto builder = build_array_for(*schema, std::move(table));
  if (!builder) return std::move(builder).error();
  const Table& kept = builder->object();
  const ArrayValues rows{.length = static_cast<std::int64_t>(kept.ids.size())};
  const ArrayValues rows_with_null{.length = rows.length, .null_count = 1};
  builder->set(builder->root(), rows, {nullptr});
  const AddedChildren columns = builder->add_children(builder->root(), 3);
  builder->set(columns[0], rows_with_null, {&kept.ids_valid, kept.ids.data()});
  builder->set(columns[1], rows, {nullptr, kept.prices.data()});
  builder->set(columns[2], rows, {nullptr, kept.name_offsets.data(), kept.names.data()});
  return builder->finish_cpu();
}

// A stream of two batches, made from a range.
DeviceArrayStream stream_of_range() {
  Schema schema = table_schema("g");
  std::vector<Result<DeviceArray>> batches;
  for (const std::int32_t first : {10, 20}) batches.push_back(batch_of(schema, table_of(first)));
  return need(make_device_stream(std::move(schema), ARROW_DEVICE_CPU, std::move(batches)),
              "make_device_stream");
}

// A stream of one batch, made from a callable. Its schema says list where the batch has a price.
DeviceArrayStream stream_of_misfit() {
  auto next = [done = false]() mutable -> std::optional<Result<DeviceArray>> {
    if (std::exchange(done, true)) return std::nullopt;
    return batch_of(table_schema("g"), table_of(30));
  };
  return need(make_device_stream(table_schema("u"), ARROW_DEVICE_CPU, std::move(next)),
              "make_device_stream");
}

}  // namespace

int main() {
  {
    ArrowSchema schema;
    ArrowDeviceArray batch;
    Schema made = table_schema("g");
    need(batch_of(made, table_of(0)), "batch").move_to(&batch);
    made.move_to(&schema);
    expect(tables_alive == 1, "the batch owns its table");
    import_batch(&schema, &batch);
  }
  expect(tables_alive == 0, "the batch was released");

  ArrowDeviceArrayStream stream;
  stream_of_range().move_to(&stream);
  import_stream(&stream);
  expect(tables_alive == 0, "every batch of the stream was released");
  stream_of_misfit().move_to(&stream);
  import_misfit(&stream);
  stream_of_range().move_to(&stream);
  import_async(&stream);
  expect(tables_alive == 0, "every batch of the async stream was released");
  std::puts(
      "a batch, a stream, an async stream and a tensor were read, and every table was released");
  return 0;
}
