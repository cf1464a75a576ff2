// SPDX-License-Identifier: Apache-2.0
//
// Exports a table as a record batch with three columns. A consumer keeps one of the columns.
#include <cstdint>
#include <iostream>
#include <utility>
#include <vector>

#include "fletching/array_capacity.hpp"
#include "fletching/buffer.hpp"
#include "fletching/check_array.hpp"
#include "fletching/schema_builder.hpp"

using namespace fletching;

struct Table {  // any type: the batch owns it
  std::vector<std::int32_t> id, amount, price;
};

static Result<DeviceArray> batch_of(const Schema& schema, Table table) {
  auto builder = build_array_for(*schema, std::move(table));
  if (!builder) return std::move(builder).error();
  const Table& kept = builder->object();
  const ArrayValues rows{.length = static_cast<std::int64_t>(kept.id.size())};
  builder->set(builder->root(), rows, {nullptr});  // no bitmap: no nulls
  const AddedChildren columns = builder->add_children(builder->root(), 3);
  builder->set(columns[0], rows, {nullptr, kept.id.data()});
  builder->set(columns[1], rows, {nullptr, kept.amount.data()});
  builder->set(columns[2], rows, {nullptr, kept.price.data()});
  return builder->finish_cpu();  // or the error of the first step that failed
}

int main() try {  // value() throws if there is an error
  const std::vector<SchemaNode> columns{{"i", "id"}, {"i", "amount"}, {"i", "price"}};
  const Schema schema = make_schema({.format = "+s", .children = columns}).value();
  DeviceArray batch = batch_of(schema, {{7, 8}, {3, 4}, {50, 99}}).value();
  verify_array(*schema, *batch).value();            // a consumer compares it with the schema,
  DeviceArray price = batch.take_child(2).value();  // moves out the column that it keeps,
  batch.release();                                  // and releases the rest
  std::cout << "the last price is " << buffer<std::int32_t>(price, 1).value().back() << '\n';
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
