// The consumer, which knows the producer only through its C structs.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/async_adapters.hpp"
#include "fletching/buffer.hpp"
#include "fletching/check_array.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/executor.hpp"
#include "fletching/owner.hpp"
#include "fletching/stream.hpp"
#include "fletching/sync_event.hpp"
#include "user_project.hpp"

using namespace fletching;

namespace {

std::string_view text_at(const DeviceArray& column, std::size_t row) {
  const auto offsets = need(buffer<std::int32_t>(column, 1, column.length() + 1), "offsets");
  const auto* bytes = static_cast<const char*>(column->array.buffers[2]);
  return {bytes + offsets[row], bytes + offsets[row + 1]};
}

// Checks a batch whose ids begin with `first`.
void check_columns(DeviceArray batch, std::int32_t first) {
  need(SyncEvent(batch).synchronize(), "synchronize");  // returns at once if sync_event is NULL
  const DeviceArray ids = need(batch.take_child(0), "take_child(0)");
  const DeviceArray prices = need(batch.take_child(1), "take_child(1)");
  const DeviceArray names = need(batch.take_child(2), "take_child(2)");
  batch.release();

  const auto id = need(buffer<std::int32_t>(ids, 1), "ids");
  const Validity valid = need(validity(ids), "validity of ids");
  expect(id.size() == 3 && id[0] == first && id[2] == first + 2, "ids are those that were sent");
  expect(valid.size() == 3 && valid[0] && !valid[1] && valid[2], "the second id is null");
  expect(ids.null_count() == 1, "one id is null");
  const auto price = need(buffer<double>(prices, 1), "prices");
  expect(price.size() == 3 && price[1] == first + 1.5, "prices are those that were sent");
  expect(need(validity(prices), "validity of prices")[1], "no price is null");
  expect(text_at(names, 0) == "ab" && text_at(names, 1).empty() && text_at(names, 2) == "cd",
         "names are those that were sent");
}

// Converts the column to a tensor and back, which must share the memory.
void check_tensor(const Schema& schema, DeviceArray column) {
  const void* const memory = column->array.buffers[1];
  DlpackTensor tensor = need(to_dlpack(*schema, column), "to_dlpack");
  expect(column.is_released(), "the column has moved into the tensor");
  expect(tensor->dl_tensor.data == memory, "the tensor is not a copy");
  expect(tensor->dl_tensor.ndim == 1 && tensor->dl_tensor.shape[0] == 3, "the tensor has 3 values");

  const ImportedTensor imported = need(from_dlpack(std::move(tensor)), "from_dlpack");
  expect(imported.array->array.buffers[1] == memory, "the imported array is not a copy");
  expect(imported.schema.format() == "g" && imported.read_only && !imported.copied,
         "a read-only array of float64");
  need(verify_array(*imported.schema, *imported.array), "verify_array of the tensor");
  expect(need(buffer<double>(imported.array, 1), "values of the tensor")[2] == 2.5,
         "the last value is 2.5");
}

}  // namespace

extern "C" void import_batch(ArrowSchema* raw_schema, ArrowDeviceArray* raw_batch) {
  Schema schema(raw_schema);
  DeviceArray batch(raw_batch);
  const ArrayFindings findings = need(check_array(*schema, *batch), "check_array");
  need(findings.status(), "the batch fits its schema");
  expect(schema.children().size() == 3 && std::string_view(schema.children()[2]->name) == "name",
         "three columns");
  expect(SyncEvent(batch).is_null() && need(SyncEvent(batch).ready(), "ready"),
         "the data is there");

  DeviceArray prices = need(batch.take_child(1), "take_child(1)");
  expect(!need(check_array(*schema, *batch), "check_array").empty(),
         "a column that was moved out is a finding");
  batch.release();  // the column stays valid
  check_tensor(need(schema.take_child(1), "take_child of the schema"), std::move(prices));
}

extern "C" void import_stream(ArrowDeviceArrayStream* raw) {
  DeviceArrayStreamReader reader(DeviceArrayStream(raw), {.strict = true});
  expect(need(reader.schema(), "schema").format() == "+s", "a stream of structs");
  std::optional<Result<DeviceArray>> head = reader.next();
  expect(head.has_value(), "a first batch");
  check_columns(need(*std::move(head), "the first batch"), 10);
  int rest = 0;
  for (Result<DeviceArray>& batch : reader) {
    check_columns(need(std::move(batch), "the second batch"), 20);
    ++rest;
  }
  expect(rest == 1 && !reader.next(), "two batches, and the end");
}

extern "C" void import_misfit(ArrowDeviceArrayStream* raw) {
  DeviceArrayStreamReader reader(DeviceArrayStream(raw), {.strict = true});
  const std::optional<Result<DeviceArray>> batch = reader.next();
  expect(batch && !batch->ok() && batch->error().code() == EINVAL, "strict mode refuses the batch");
  expect(batch->error().message().find("children[1]") != std::string::npos,
         "the error names the column");
}

extern "C" void import_async(ArrowDeviceArrayStream* raw) {
  const std::unique_ptr<WorkerThread> worker = need(WorkerThread::start(), "WorkerThread");
  AsyncReader consumer = need(AsyncReader::create(/*window=*/1), "AsyncReader");
  need(send_async(DeviceArrayStream(raw), consumer.handler(), *worker), "send_async");
  DeviceArrayStreamReader reader(need(std::move(consumer).open(), "open"), {.strict = true});
  std::int32_t first = 10;
  for (; std::optional<Result<DeviceArray>> batch = reader.next(); first += 10) {
    check_columns(need(*std::move(batch), "a batch of the async stream"), first);
  }
  expect(first == 30, "two batches were sent");
}
