// SPDX-License-Identifier: Apache-2.0
//
// The C++ library as two conformance subjects. One returns views of shared data and streams over
// readers; the other moves structs and returns streams over adapters and callables.
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>

#include "async.hpp"
#include "fletching/async_adapters.hpp"
#include "fletching/conformance.h"
#include "fletching/detail/message.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/export_event.hpp"
#include "fletching/format.hpp"
#include "fletching/metadata.hpp"
#include "fletching/release_after.hpp"
#include "fletching/shared.hpp"
#include "fletching/stream.hpp"
#include "fletching/stream_adapters.hpp"
#include "fletching/stream_producer.hpp"
#include "fletching/sync_event.hpp"
#include "fletching/vulkan_event.hpp"
#include "fletching/waiter.hpp"

namespace fletching {
namespace {

int finish(const Status& status, FletchingMessage* message) noexcept {
  detail::write_message(message, status.ok() ? "" : status.error().message());
  return status.ok() ? 0 : status.error().code();
}

/// Moves the struct to *out, or returns the error.
template <class Owned, class Raw>
int hand_out(Result<Owned> made, Raw* out, FletchingMessage* message) noexcept {
  if (!made.ok()) return finish(made.error(), message);
  made->move_to(out);
  return finish({}, message);
}

/// Parses all formats and metadata of a schema.
Status read(const ArrowSchema& schema) {
  if (const auto format = parse_format(schema.format); !format) return format.error();
  if (schema.metadata != nullptr) {
    if (const auto metadata = MetadataView::read(schema.metadata); !metadata) {
      return metadata.error();
    }
  }
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    if (Status child = read(*schema.children[i]); !child) return child;
  }
  return schema.dictionary == nullptr ? Status() : read(*schema.dictionary);
}

template <class Raw>
Result<Owner<Raw>> shared_view(Owner<Raw> owner) {
  const Result<Shared<Raw>> shared = share(std::move(owner));
  if (!shared) return shared.error();
  return shared->view();
}

int schema(void* /*context*/, ArrowSchema* in, ArrowSchema* out, FletchingMessage* message) {
  Result<Schema> view = shared_view(Schema(in));
  if (view.ok()) {
    if (const Status status = read(**view); !status) return finish(status, message);
  }
  return hand_out(std::move(view), out, message);
}

int move_schema(void* /*context*/, ArrowSchema* in, ArrowSchema* out, FletchingMessage* message) {
  return hand_out(Result<Schema>(Schema(in)), out, message);
}

/// Returns a view with an attached object, which is freed with it.
Result<DeviceArray> attached_view(DeviceArray array) {
  Result<DeviceArray> view = shared_view(std::move(array));
  if (!view) return view;
  if (Status attached = attach(*view, std::make_shared<int>(1)); !attached) return attached.error();
  return view;
}

int array(void* context, ArrowSchema* in_schema, ArrowDeviceArray* in, ArrowSchema* out_schema,
          ArrowDeviceArray* out, FletchingMessage* message) {
  const int code = hand_out(attached_view(DeviceArray(in)), out, message);
  return code != 0 ? code : move_schema(context, in_schema, out_schema, message);
}

int move_array(void* context, ArrowSchema* in_schema, ArrowDeviceArray* in, ArrowSchema* out_schema,
               ArrowDeviceArray* out, FletchingMessage* message) {
  DeviceArray moved(in);
  if (moved.is_released()) return finish(Error(EINVAL, "array: released"), message);
  moved.move_to(out);
  return move_schema(context, in_schema, out_schema, message);
}

int child(void* /*context*/, ArrowSchema* in_schema, ArrowDeviceArray* in, std::int64_t index,
          ArrowDeviceArray* out, FletchingMessage* message) {
  const Schema unused(in_schema);
  DeviceArray parent(in);
  return hand_out(parent.take_child(index), out, message);
}

int column(void* /*context*/, ArrowSchema* in_schema, ArrowDeviceArray* in, std::int64_t index,
           ArrowDeviceArray* out, FletchingMessage* message) {
  const Schema unused(in_schema);
  const Result<SharedDeviceArray> shared = share(DeviceArray(in));
  if (!shared) return finish(shared.error(), message);
  return hand_out(shared->column(index), out, message);
}

int stream(void* /*context*/, ArrowArrayStream* in, ArrowArrayStream* out,
           FletchingMessage* message) {
  ArrayStreamReader reader{ArrayStream(in)};
  Result<Schema> schema = reader.schema();
  if (!schema) return finish(schema.error(), message);
  return hand_out(make_array_stream(*std::move(schema), std::move(reader)), out, message);
}

int device_stream(void* /*context*/, ArrowDeviceArrayStream* in, ArrowDeviceArrayStream* out,
                  FletchingMessage* message) {
  const ArrowDeviceType device_type = in->device_type;
  DeviceArrayStreamReader reader{DeviceArrayStream(in)};
  Result<Schema> schema = reader.schema();
  if (!schema) return finish(schema.error(), message);
  return hand_out(make_device_stream(*std::move(schema), device_type, std::move(reader)), out,
                  message);
}

int adapt_stream(void* /*context*/, ArrowArrayStream* in, ArrowArrayStream* out,
                 FletchingMessage* message) {
  Result<DeviceArrayStream> device = to_device_stream(ArrayStream(in));
  if (!device) return finish(device.error(), message);
  return hand_out(to_array_stream(*std::move(device)), out, message);
}

int call_stream(void* /*context*/, ArrowDeviceArrayStream* in, ArrowDeviceArrayStream* out,
                FletchingMessage* message) {
  const ArrowDeviceType device_type = in->device_type;
  auto reader = std::make_shared<DeviceArrayStreamReader>(DeviceArrayStream(in));
  Result<Schema> schema = reader->schema();
  if (!schema) return finish(schema.error(), message);
  return hand_out(make_device_stream(*std::move(schema), device_type,
                                     [reader = std::move(reader)] { return reader->next(); }),
                  out, message);
}

int tensor(void* /*context*/, DLManagedTensorVersioned* in, DLManagedTensorVersioned** out,
           FletchingMessage* message) {
  Result<ImportedTensor> imported = from_dlpack(DlpackTensor(in));
  if (!imported) return finish(imported.error(), message);
  Result<DlpackTensor> exported = to_dlpack(*imported->schema, imported->array);
  if (!exported) return finish(exported.error(), message);
  *out = exported->detach();
  return finish({}, message);
}

int legacy_tensor(void* /*context*/, DLManagedTensor* in, DLManagedTensor** out,
                  FletchingMessage* message) {
  Result<ImportedTensor> imported = from_dlpack(LegacyDlpackTensor(in));
  if (!imported) return finish(imported.error(), message);
  Result<LegacyDlpackTensor> exported =
      to_legacy_dlpack(*imported->schema, imported->array, {.read_only = false});
  if (!exported) return finish(exported.error(), message);
  *out = exported->detach();
  return finish({}, message);
}

/// `Window` is the number of batches requested ahead.
template <std::int64_t Window>
int receive(void* /*context*/, FletchingSubjectConnect connect, void* connect_context,
            ArrowDeviceArrayStream* out, FletchingMessage* message) {
  Result<AsyncReader> reader = AsyncReader::create(Window);
  if (!reader) return finish(reader.error(), message);
  ArrowAsyncDeviceStreamHandler* const handler = reader->handler();
  if (const int code = connect(connect_context, handler); code != 0) {
    handler->release(handler);
    return finish(Error(code, "no producer has taken the handler"), message);
  }
  return hand_out(std::move(*reader).open(), out, message);
}

int send(void* /*context*/, ArrowDeviceArrayStream* in, ArrowAsyncDeviceStreamHandler* handler,
         FletchingMessage* message) {
  static const auto worker = WorkerThread::start();
  if (!worker) return finish(worker.error(), message);
  return finish(send_async(DeviceArrayStream(in), handler, **worker), message);
}

vulkan::WaitContext g_vulkan;  // for the suite's device

bool is_vulkan(const ArrowDeviceArray& array) { return array.device_type == ARROW_DEVICE_VULKAN; }

int synchronize(void* /*context*/, ArrowDeviceArray* array, FletchingMessage* message) {
  const SyncEvent event(*array);
  return finish(is_vulkan(*array) ? event.synchronize(g_vulkan) : event.synchronize(), message);
}

int is_ready(void* /*context*/, ArrowDeviceArray* array, std::int32_t* ready,
             FletchingMessage* message) {
  const SyncEvent event(*array);
  const Result<bool> happened = is_vulkan(*array) ? event.ready(g_vulkan) : event.ready();
  if (!happened) return finish(happened.error(), message);
  *ready = *happened ? 1 : 0;
  return finish({}, message);
}

int wait_on(void* /*context*/, ArrowDeviceArray* array, void* stream, FletchingMessage* message) {
  const SyncEvent event(*array);
  return finish(is_vulkan(*array) ? event.wait_on(g_vulkan, stream)
                                  : event.wait_on(Stream(array->device_type, stream)),
                message);
}

int give_event(void* /*context*/, ArrowDeviceArray* array, void* stream,
               FletchingMessage* message) {
  DeviceArray owner(array);
  const Status exported = export_with_event(owner, Stream(owner.device_type(), stream));
  owner.move_to(array);
  return finish(exported, message);
}

int release_later(void* /*context*/, ArrowDeviceArray* array, void* stream,
                  FletchingMessage* message) {
  DeviceArray owner(array);
  const Stream on(owner.device_type(), stream);
  return finish(release_after(owner, on), message);
}

int use_vulkan(void* /*context*/, void* device, void* queue, std::uint32_t set_stages,
               void* get_device_proc_addr, FletchingMessage* message) {
  g_vulkan.device = device;
  g_vulkan.producer_queue = queue;
  g_vulkan.queue = queue;
  g_vulkan.set_stages = set_stages;
  g_vulkan.get_device_proc_addr =
      reinterpret_cast<decltype(g_vulkan.get_device_proc_addr)>(get_device_proc_addr);
  return finish({}, message);
}

int use_waiter(void* /*context*/, ArrowDeviceType device_type, const FletchingWaiter* waiter,
               FletchingMessage* message) {
  return finish(register_waiter(device_type, *waiter), message);
}

int producer(void* /*context*/, ArrowAsyncDeviceStreamHandler* handler,
             FletchingSubjectProducer* out, FletchingMessage* message) {
  return finish(make_producer(handler, out), message);
}

int consumer(void* /*context*/, FletchingSubjectNotify notify, void* notify_context,
             FletchingSubjectConsumer* out, FletchingMessage* message) {
  return finish(make_consumer(notify, notify_context, out), message);
}

constexpr FletchingSubject kViews{
    sizeof(FletchingSubject),
    "cpp",
    nullptr,
    FLETCHING_SUBJECT_CHECKS_SCHEMAS | FLETCHING_SUBJECT_CHECKS_FORMATS,
    schema,
    array,
    child,
    stream,
    device_stream,
    tensor,
    legacy_tensor,
    receive<2>,
    send,
    synchronize,
    is_ready,
    wait_on,
    give_event,
    release_later,
    use_vulkan,
    use_waiter,
    producer,
    consumer};

constexpr FletchingSubject moves() {
  FletchingSubject subject = kViews;
  subject.name = "cpp-moves";
  subject.promises = 0;
  subject.schema = move_schema;
  subject.array = move_array;
  subject.child = column;
  subject.stream = adapt_stream;
  subject.device_stream = call_stream;
  subject.receive = receive<16>;
  return subject;
}

constexpr FletchingSubject kSubjects[] = {kViews, moves()};

}  // namespace
}  // namespace fletching

extern "C" FLETCHING_CONFORMANCE_EXPORT const FletchingSubject* FletchingConformanceSubject(
    std::int32_t index) {
  const auto at = static_cast<std::size_t>(index);
  return at < std::size(fletching::kSubjects) ? &fletching::kSubjects[at] : nullptr;
}
