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
  FletchingMessage last_error{};  // empty: the last operation succeeded
};

std::shared_ptr<StreamState> state_of(const ArrowDeviceArrayStream* self) noexcept {
  if (self == nullptr) return nullptr;
  return std::static_pointer_cast<StreamState>(find(Kind::kStream, self->private_data));
}

int get_schema(ArrowDeviceArrayStream* self, ArrowSchema* out) noexcept {
  const auto state = state_of(self);
  if (state == nullptr) return EINVAL;
  return guarded(&state->last_error, [&] {
    if (out == nullptr) fail(EINVAL, "get_schema: out is NULL");
    zero(out);
    export_schema(state->what.node, out);
  });
}

int get_next(ArrowDeviceArrayStream* self, ArrowDeviceArray* out) noexcept {
  const auto state = state_of(self);
  if (state == nullptr) return EINVAL;
  return guarded(&state->last_error, [&] {
    if (out == nullptr) fail(EINVAL, "get_next: out is NULL");
    zero(out);
    if (state->next == state->fail_at) fail(EIO, failure_text(state->what, state->next));
    if (state->next == state->batches) return;
    export_array(state->filler, state->what.node, out);
    ++state->next;
  });
}

const char* get_last_error(ArrowDeviceArrayStream* self) noexcept {
  const auto state = state_of(self);
  if (state == nullptr || state->last_error.text[0] == '\0') return nullptr;
  return state->last_error.text;
}

void release_stream(ArrowDeviceArrayStream* self) noexcept {
  if (self == nullptr) return;
  self->release = nullptr;
  unregister_struct(Kind::kStream, self->private_data);
}

}  // namespace

std::string failure_text(const Case& what, int64_t batch) {
  return "case " + what.name + ": the stream fails on purpose before batch " +
         std::to_string(batch);
}

void export_stream(std::shared_ptr<Filler> filler, const Case& what, int64_t batches,
                   int64_t fail_at, ArrowDeviceArrayStream* out) {
  const ArrowDeviceType device_type = filler->backend().device_type();
  void* private_data = register_struct(
      Kind::kStream,
      std::make_shared<StreamState>(StreamState{std::move(filler), what, batches, fail_at}));
  out->device_type = device_type;
  out->get_schema = get_schema;
  out->get_next = get_next;
  out->get_last_error = get_last_error;
  out->release = release_stream;
  out->private_data = private_data;
}

}  // namespace fletching::producer
