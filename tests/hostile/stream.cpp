// Streams that misbehave, as ArrowArrayStream and as ArrowDeviceArrayStream.
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "cases.hpp"
#include "data.h"

namespace {

constexpr int kBatches = 3;

struct Stream {
  const json* set;
  int calls = 0;  // number of get_next calls
  bool failed = false;
  std::array<char, 32> text{};
};

Stream* find(void* id, const char* callback) {
  auto* const stream = static_cast<Stream*>(FindId(id, callback));
  if (stream == nullptr) return nullptr;
  stream->failed = false;
  std::memset(stream->text.data(), '#', stream->text.size() - 1);
  return stream;
}

int fail_call(Stream& stream) {
  stream.failed = true;
  std::snprintf(stream.text.data(), stream.text.size(), "failed at call %d", stream.calls);
  return error_of(*stream.set);
}

template <class Raw>
int get_schema(Raw* self, ArrowSchema* out) {
  Stream* const stream = find(self->private_data, "get_schema");
  if (stream == nullptr) return EINVAL;
  return guarded(nullptr, [&] {
    const std::string schema = stream->set->value("schema", "");
    if (schema.empty()) return MakeSchema(0, out);
    if (schema == "partial") LeaveSchema(out);
    if (schema != "released") return fail_call(*stream);
    *out = {};
    return 0;
  });
}

bool fails(const Stream& stream) {
  const int failing = stream.set->value("fails_at", 0);
  const bool is_later = stream.calls > failing && !stream.set->contains("then_more");
  return failing != 0 && (stream.calls == failing || is_later);
}

bool is_end(const Stream& stream) {
  const int last = stream.set->value("batches", kBatches);
  return stream.set->contains("then_more") ? stream.calls == last + 1 : stream.calls > last;
}

void leave(ArrowArray* out) { LeaveArray(out); }
void leave(ArrowDeviceArray* out) { LeaveDeviceArray(out); }
void store(const ArrowDeviceArray& made, ArrowArray* out) { *out = made.array; }
void store(const ArrowDeviceArray& made, ArrowDeviceArray* out) { *out = made; }

template <class Raw, class Out>
int get_next(Raw* self, Out* out) {
  Stream* const stream = find(self->private_data, "get_next");
  if (stream == nullptr) return EINVAL;
  ++stream->calls;
  return guarded(nullptr, [&] {
    if (fails(*stream)) {
      if (stream->set->contains("partial")) leave(out);
      return fail_call(*stream);
    }
    ArrowDeviceArray made{};
    const int code = is_end(*stream) ? 0 : MakeDeviceArray(0, &made);
    if (code != 0) return code;
    if (made.array.release != nullptr) change_device(&made, stream->set->value("batch", json()));
    store(made, out);
    return 0;
  });
}

template <class Raw>
const char* get_last_error(Raw* self) {
  const auto* const stream =
      static_cast<const Stream*>(FindId(self->private_data, "get_last_error"));
  if (stream == nullptr) return nullptr;
  if (!stream->failed) {
    Mistake("get_last_error was called, and the last call had not failed");
    return nullptr;
  }
  return stream->set->contains("text") ? text((*stream->set)["text"]) : stream->text.data();
}

template <class Raw>
void release_and_forget(Raw* self) {
  CloseId(self->private_data, "release of a stream");
}
template <class Raw>
void release(Raw* self) {
  release_and_forget(self);
  self->release = nullptr;
}

void destroy(void* stream) { delete static_cast<Stream*>(stream); }

template <class Out, class Raw>
int export_stream(const Case* found, Raw* out, FletchingMessage* message) {
  if (found == nullptr) return EINVAL;
  if (out == nullptr) return Fail(message, EINVAL, "out is NULL");
  return guarded(message, [&] {
    const json& set = changes_of(found);
    *out = {};
    if (!set.contains("get_schema")) out->get_schema = get_schema<Raw>;
    if (!set.contains("get_next")) out->get_next = get_next<Raw, Out>;
    if (!set.contains("get_last_error")) out->get_last_error = get_last_error<Raw>;
    if constexpr (requires { out->device_type; }) {
      out->device_type = ARROW_DEVICE_CPU;
      assign(set, "device_type", out->device_type);
    }
    if (set.contains("release")) return 0;
    auto* const stream = new Stream{&set};
    out->private_data = OpenId(kCountsAsStruct, stream, destroy);
    if (out->private_data == nullptr) {
      destroy(stream);
      return Fail(message, ENOMEM, "out of memory");
    }
    out->release = set.contains("release_forgets") ? release_and_forget<Raw> : release<Raw>;
    return 0;
  });
}

}  // namespace

int FletchingHostileExportStream(const char* name, ArrowArrayStream* out,
                                 FletchingMessage* message) {
  return export_stream<ArrowArray>(FindCase(&kStreamParty, name, message), out, message);
}

int FletchingHostileExportDeviceStream(const char* name, ArrowDeviceArrayStream* out,
                                       FletchingMessage* message) {
  const Case* found = FindCase(&kDeviceStreamParty, name, message);
  if (found == nullptr) found = FindCase(&kStreamParty, name, message);
  return export_stream<ArrowDeviceArray>(found, out, message);
}
