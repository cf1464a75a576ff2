// SPDX-License-Identifier: Apache-2.0
//
// The cases of ../c/raw.c, written as a libarrow user would. libarrow does more: the producer has
// typed arrays and a schema that outlive the export, and each batch is checked.
#include <arrow/api.h>
#include <arrow/c/bridge.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "peer.h"

namespace {

/// Owner of a batch's data.
class Data {
 public:
  Data() : addresses_(peer_data()) {}
  ~Data() { peer_drop(addresses_); }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;

  [[nodiscard]] const std::uint8_t* column(int number) const {
    return static_cast<const std::uint8_t*>(addresses_[number]);
  }

 private:
  const void* const* addresses_;
};

class Values final : public arrow::Buffer {
 public:
  Values(std::shared_ptr<Data> data, int column)
      : Buffer(data->column(column), kRows * std::int64_t{sizeof(std::int64_t)}),
        data_(std::move(data)) {}

 private:
  std::shared_ptr<Data> data_;
};

std::shared_ptr<arrow::Array> column_of(const std::shared_ptr<Data>& data, int number) {
  return std::make_shared<arrow::Int64Array>(kRows, std::make_shared<Values>(data, number));
}

void check(const arrow::Status& status) {
  if (!status.ok()) std::abort();
}

void produce_leaf(ArrowDeviceArray* out) {
  check(arrow::ExportDeviceArray(*column_of(std::make_shared<Data>(), 0), nullptr, out));
}

void leaf() {
  ArrowDeviceArray source;
  produce_leaf(&source);
  peer_consume(&source);
}

const std::shared_ptr<arrow::Schema>& batch_schema() {
  static const auto schema =
      arrow::schema(arrow::FieldVector(peer_size, arrow::field("", arrow::int64())));
  return schema;
}

void produce_batch(ArrowDeviceArray* out) {
  const auto data = std::make_shared<Data>();
  std::vector<std::shared_ptr<arrow::Array>> columns;
  columns.reserve(peer_size);
  for (int i = 0; i < peer_size; ++i) columns.push_back(column_of(data, i));
  const auto batch = arrow::RecordBatch::Make(batch_schema(), kRows, std::move(columns));
  check(arrow::ExportDeviceRecordBatch(*batch, nullptr, out));
}

void handoff() {
  ArrowDeviceArray source;
  produce_batch(&source);
  peer_consume(&source);
}

/// libarrow's streams have batches with columns, so each has one.
class Batches final : public arrow::RecordBatchReader {
 public:
  [[nodiscard]] std::shared_ptr<arrow::Schema> schema() const override {
    static const auto schema = arrow::schema({arrow::field("", arrow::int64())});
    return schema;
  }

  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* out) override {
    if (left_-- == 0) {
      *out = nullptr;
    } else {
      *out = arrow::RecordBatch::Make(schema(), kRows,
                                      arrow::ArrayVector{column_of(std::make_shared<Data>(), 0)});
    }
    return arrow::Status::OK();
  }

 private:
  int left_ = peer_size;
};

void stream() {
  ArrowDeviceArrayStream made;
  check(arrow::ExportDeviceRecordBatchReader(std::make_shared<Batches>(), &made));
  peer_read(&made);
}

void hold_leaf() { produce_leaf(peer_keep()); }
void hold_batch() { produce_batch(peer_keep()); }

}  // namespace

int main(int argc, char** argv) {
  static const Case cases[] = {{"leaf", &leaf},
                               {"handoff", &handoff},
                               {"stream", &stream},
                               {"hold_leaf", &hold_leaf},
                               {"hold_batch", &hold_batch}};
  return peer_main(argc, argv, cases, static_cast<int>(std::size(cases)));
}
