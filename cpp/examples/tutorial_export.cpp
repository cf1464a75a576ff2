// SPDX-License-Identifier: Apache-2.0
//
// The producer of docs/tutorial.md: exports a batch that an OpenCL device is still filling.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <array>
#include <memory>
#include <vector>

#include "fletching/array_capacity.hpp"
#include "fletching/export_event.hpp"
#include "fletching/release_after.hpp"
#include "fletching/schema_builder.hpp"

using namespace fletching;

struct FreeBuffer {
  void operator()(cl_mem buffer) const { clReleaseMemObject(buffer); }
};
using Buffer = std::unique_ptr<_cl_mem, FreeBuffer>;

constexpr std::int64_t kRows = 1000;

static cl_command_queue open_queue() {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  clGetPlatformIDs(1, &platform, nullptr);
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr);
  if (device == nullptr) return nullptr;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  return clCreateCommandQueue(context, device, 0, nullptr);
}

static Buffer start_filling(cl_command_queue queue, std::int32_t value) {
  cl_context context = nullptr;
  clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr);
  const std::size_t bytes = kRows * sizeof value;
  Buffer buffer(clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, nullptr));
  clEnqueueFillBuffer(queue, buffer.get(), &value, sizeof value, 0, bytes, 0, nullptr, nullptr);
  return buffer;
}

static Result<DeviceArray> make_batch(const Schema& schema, std::array<Buffer, 2> buffers) {
  auto builder = build_array_for(*schema, std::move(buffers));
  if (!builder) return std::move(builder).error();
  builder->set(builder->root(), {.length = kRows}, {nullptr});  // no validity bitmap: no nulls
  const AddedChildren columns = builder->add_children(builder->root(), 2);
  builder->set(columns[0], {.length = kRows}, {nullptr, builder->object()[0].get()});
  builder->set(columns[1], {.length = kRows}, {nullptr, builder->object()[1].get()});
  return builder->finish(ARROW_DEVICE_OPENCL, /*device_id=*/0);
}

extern "C" int export_batch(ArrowSchema* out_schema, ArrowDeviceArray* out) noexcept {
  cl_command_queue queue = open_queue();
  if (queue == nullptr) return ENODEV;
  const std::vector<SchemaNode> columns{{"i", "id"}, {"i", "price"}};
  Result<Schema> schema = make_schema({.format = "+s", .children = columns});
  if (!schema) return schema.error().code();
  Result<DeviceArray> batch =
      make_batch(*schema, {start_filling(queue, 7), start_filling(queue, 99)});
  if (!batch) return batch.error().code();

  const Stream stream(ARROW_DEVICE_OPENCL, queue);
  const Status exported = export_with_event(*batch, stream);
  if (!exported) {
    (void)release_after(*batch, stream);  // not before the device has filled the buffers
    return exported.error().code();
  }
  schema->move_to(out_schema);
  batch->move_to(out);
  return 0;
}
