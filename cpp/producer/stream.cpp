#include "export.hpp"
#include "message.hpp"
#include "registry.hpp"

namespace fletching::producer {
namespace {

struct StreamState {
  std::shared_ptr<Filler> filler;
  const Case& what;
  int64_t batches;
  int64_t fail_at;
  int64_t next = 0;
  FletchingMessage last_error{};  // empty: the last operation did not fail
};

std::shared_ptr<StreamState> StateOf(const ArrowDeviceArrayStream* self) noexcept {
  if (self == nullptr) return nullptr;
  return std::static_pointer_cast<StreamState>(Find(Kind::kStream, self->private_data));
}

int GetSchema(ArrowDeviceArrayStream* self, ArrowSchema* out) noexcept {
  const auto state = StateOf(self);
  if (state == nullptr) return EINVAL;
  return Guarded(&state->last_error, [&] {
    if (out == nullptr) Fail(EINVAL, "get_schema: out is NULL");
    Zero(out);
    ExportSchema(state->what.node, out);
  });
}

int GetNext(ArrowDeviceArrayStream* self, ArrowDeviceArray* out) noexcept {
  const auto state = StateOf(self);
  if (state == nullptr) return EINVAL;
  return Guarded(&state->last_error, [&] {
    if (out == nullptr) Fail(EINVAL, "get_next: out is NULL");
    Zero(out);
    if (state->next == state->fail_at) Fail(EIO, FailureText(state->what, state->next));
    if (state->next == state->batches) return;
    ExportArray(state->filler, state->what.node, out);
    ++state->next;
  });
}

const char* GetLastError(ArrowDeviceArrayStream* self) noexcept {
  const auto state = StateOf(self);
  if (state == nullptr || state->last_error.text[0] == '\0') return nullptr;
  return state->last_error.text;
}

void ReleaseStream(ArrowDeviceArrayStream* self) noexcept {
  if (self == nullptr) return;
  self->release = nullptr;
  Unregister(Kind::kStream, self->private_data);
}

}  // namespace

std::string FailureText(const Case& what, int64_t batch) {
  return "case " + what.name + ": the stream fails on purpose before batch " +
         std::to_string(batch);
}

void ExportStream(std::shared_ptr<Filler> filler, const Case& what, int64_t batches,
                  int64_t fail_at, ArrowDeviceArrayStream* out) {
  const ArrowDeviceType device_type = filler->backend().DeviceType();
  void* private_data = Register(Kind::kStream, std::make_shared<StreamState>(StreamState{
                                                   std::move(filler), what, batches, fail_at}));
  out->device_type = device_type;
  out->get_schema = GetSchema;
  out->get_next = GetNext;
  out->get_last_error = GetLastError;
  out->release = ReleaseStream;
  out->private_data = private_data;
}

}  // namespace fletching::producer
