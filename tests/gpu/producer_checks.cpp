// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalogue_text.hpp"
#include "checks.hpp"
#include "device.hpp"
#include "device_cases.hpp"
#include "fletching/owner.hpp"
#include "fletching/stream.hpp"
#include "gated.hpp"
#include "kernels.hpp"
#include "producer.h"
#include "waiting.hpp"
#include "watchdog.hpp"

namespace fletching::gpu {
namespace {

constexpr std::int64_t kNever = -1;
constexpr std::int64_t kBatches = 3;

Device found(const char* backend) {
  Device device(backend);
  if (std::string_view(device.status()) == "absent") {
    // Without nvcc no kernel is built; with nvcc this is a failure.
    const bool left_out = producer::kCudaImage.size == 0;
    fail(left_out ? ENODEV : EIO, device.description());
  }
  return device;
}

/// Returns the cases with data on the device. The others have no old data to read.
std::vector<const char*> cases_with_data() {
  static const std::regex data("buffer \\d+ [1-9]");
  std::vector<const char*> names;
  for (std::int32_t i = 0; i < FletchingProducerCaseCount(); ++i) {
    const char* name = FletchingProducerCaseName(i);
    if (std::regex_search(producer::case_text(name), data)) names.push_back(name);
  }
  return names;
}

void require_content(Asserter& asserter, const Device& device, const char* name,
                     const Schema& schema, const DeviceArray& array) {
  FletchingMessage message{};
  const int code =
      FletchingProducerVerifyArray(device.backend(), name, schema.get(), array.get(), &message);
  asserter.require_success(name, code, message);
}

using Require = decltype(&require_waits);

/// Prefixes an error with the case's name.
template <class Work>
void in_case(const char* name, const Work& work) {
  g_subject = name;
  try {
    work();
  } catch (const Error& error) {
    fail(error.code, std::string(name) + ": " + error.text);
  }
}

void check_arrays(Asserter& asserter, const char* backend, Require require) {
  const Device device = found(backend);
  FletchingProducerResetCounters();
  for (const char* name : cases_with_data()) {
    in_case(name, [&] {
      GatedProducer gate(device);
      Schema schema;
      std::vector<DeviceArray> arrays(1);
      gate.export_array(name, schema.out(), arrays.front().out());
      require(asserter, device, gate, name, arrays);
      require_content(asserter, device, name, schema, arrays.front());
    });
  }
  require_producer_at_rest(asserter);
}

void check_streams(Asserter& asserter, const char* backend, Require require) {
  const Device device = found(backend);
  FletchingProducerResetCounters();
  for (const char* name : producer::kDeviceCases) {
    in_case(name, [&] {
      GatedProducer gate(device);
      DeviceArrayStream stream;
      gate.export_stream(name, kBatches, kNever, stream.out());
      StreamReader<ArrowDeviceArrayStream> reader(std::move(stream));
      const Result<Schema> schema = reader.schema();
      asserter.require_success("get_schema", schema);
      std::vector<DeviceArray> batches;
      for (Result<DeviceArray>& batch : reader) {
        asserter.require_success("get_next", batch);
        batches.push_back(*std::move(batch));
      }
      reader.release();
      asserter.require_equal("the number of batches", std::ssize(batches), kBatches);
      require(asserter, device, gate, name, batches);
      for (const DeviceArray& batch : batches) {
        require_content(asserter, device, name, *schema, batch);
      }
    });
  }
  require_producer_at_rest(asserter);
}

}  // namespace

// Without a gate: the kernel turns the old data into the new data.
void check_kernel(Asserter& asserter, const char* backend) {
  const Device device = found(backend);
  FletchingProducerResetCounters();
  for (const char* name : cases_with_data()) {
    in_case(name, [&] {
      Schema schema;
      DeviceArray array;
      FletchingMessage message{};
      const int code =
          FletchingProducerExportArray(backend, name, schema.out(), array.out(), &message);
      asserter.require_success("export", code, message);
      Queue queue(device);
      asserter.require_success("wait_on", wait_on(array, queue.handle()));
      queue.read(name, array);
      asserter.add("what the kernel made", queue.verify(FLETCHING_PRODUCER_NEW));
      require_content(asserter, device, name, schema, array);
    });
  }
  require_producer_at_rest(asserter);
}

void check_gate(Asserter& asserter, const char* backend) {
  check_arrays(asserter, backend, require_waits);
}

void check_gate_control(Asserter& asserter, const char* backend) {
  check_arrays(asserter, backend, require_old_data_without_wait);
}

void check_stream_gate(Asserter& asserter, const char* backend) {
  check_streams(asserter, backend, require_waits);
}

void check_stream_gate_control(Asserter& asserter, const char* backend) {
  check_streams(asserter, backend, require_old_data_without_wait);
}

}  // namespace fletching::gpu
